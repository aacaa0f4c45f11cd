// Products of pairs of tiles with up to eight records on tensor cores, straight
// from what 16 bytes a lane hold: a lane has four neighbouring rows of one of the
// two tiles and, of each run of 32 columns, eight. A warp reads 512 bytes at once
// (of codes of 4 bits). The order of additions is that of Spans.h.
//
// Weights are read chunk by chunk of 64 columns, and can be fetched long before
// they are multiplied.

#pragma once

#include "targets/cuda/codegen/Weights.h"
#include <array>

namespace izhc::cuda {

class PairDot {
public:
  using Value = mlir::Value;
  using Values = KernelBuilder::Values;

  static constexpr int64_t kRows = 4;    // of a lane
  static constexpr int64_t kRecords = 8; // that are multiplied together

  // Whether weights of `type` can be read so, with records of `act`.
  static bool supports(pack::WeightType type, pack::ActType act);

  // For one record, or for up to kRecords.
  PairDot(Block &block, pack::WeightType type, pack::ActType act, bool oneRecord);

  // Which of the two tiles the lane has (i64).
  Value tile() const { return second; }
  // The first of the lane's rows in its tile; and the first of its records, of
  // which it has columns().
  Value firstRow() const { return k.mul(quad, kRows); }
  Value firstRecord() const { return k.mul(place, 2); }
  int64_t columns() const { return oneRecord ? 1 : 2; }

  // Registers that a chunk takes.
  int64_t words() const { return words(format, layout); }
  static int64_t words(pack::WeightType type);
  // Chunk `chunk` of the lane's tile, which is at `tile`, as 32-bit words.
  Values fetch(Value tile, Value chunk) const;
  // Adds a chunk's terms, times `valid` (1 or 0; null: 1), to sums[row * columns()
  // + column]. `record(i)`: the address of record number i, i64, below kRecords.
  void add(llvm::ArrayRef<Value> words, Value chunk, Value valid,
           llvm::function_ref<Value(Value i)> record, Values &sums) const;

  // Weights that share all scales, of which a chunk has several runs.
  int64_t runWeights() const { return format.subWeights ? format.subWeights : 32; }
  // What a matrix instruction takes of the 32 columns that run `run` of a chunk lies
  // in, of rows 0 and 1 and of rows 2 and 3, as signed bytes; and the run's factors
  // and minima (empty without) of the rows. Of a byte, unit() is one step of the codes.
  struct Bytes {
    Values left[2];
    Values factors, minima;
  };
  Bytes bytes(llvm::ArrayRef<Value> words, Value chunk, int64_t run) const;
  double unit() const { return signedUnit(format); }
  // What the lane has of a record's 32 columns, whose number in the chunk is `part`:
  // so many pieces of so many bytes, piece i being
  struct Piece {
    Value at; // bytes from the chunk's first
    int64_t words;
  };
  llvm::SmallVector<Piece, 2> pieces(int64_t part) const;
  // Those columns' two words of a record, without those of other runs than `run`.
  std::array<Value, 2> masked(std::array<Value, 2> words, int64_t run) const;

protected:
  static int64_t words(const FormatSpec &format, const PackedLayout &layout);
  // Hands out words in the order in which they are asked for; `offset` is from
  // the start of the unit.
  using Reader = llvm::function_ref<Values(Value offset, int64_t words)>;
  // What the words of a chunk are: of each group of four columns (two a run of
  // 32) and each plane, the four rows.
  struct Words {
    llvm::SmallVector<llvm::SmallVector<Values, 3>, 4> groups;
    Values scales[2], mins[2]; // of blocks of 32; or [0] of all
    Values subs, subsHigh;
  };

  Words read(Value inUnit, Reader reader) const;
  void readScales(Words &words, Value inUnit, Reader reader) const;
  Values readPlanes(Value inUnit, int64_t column, Reader reader) const;
  Words parse(llvm::ArrayRef<Value> words, Value inUnit) const;
  // Of run `run` of the chunk and row `row` of the lane.
  Value factor(const Words &words, Value inUnit, int64_t run, int64_t row) const;
  Value minimum(const Words &words, Value inUnit, int64_t run, int64_t row) const;
  Value sub(const Words &words, Value inUnit, int64_t run, int64_t row, bool isMin) const;
  Value half(llvm::ArrayRef<Value> words, int64_t row) const;
  Value shifted(Value word, Value by) const;
  Value bits(Value word, Value by, int64_t fixed, int64_t mask) const;
  Value codes(const Words &words, int64_t group, int64_t row) const;
  // What a record says of run number `run` of the row.
  struct Act {
    Value scale, sum, start;
  };
  Act act(Value record, Value run, Value valid) const;
  void addRun(const Words &words, Value inUnit, int64_t run, llvm::ArrayRef<Act> acts,
              llvm::ArrayRef<Value> codes, Values &sums) const;

  Block &block;
  KernelBuilder &k;
  const FormatSpec &format;
  PackedLayout layout;
  pack::ActType actType;
  bool oneRecord;
  int64_t wordWeights;              // of a row in a word of the widest plane
  Value place, group, quad, second; // of the lane: l % 4, l / 4, row quad, tile
};

} // namespace izhc::cuda
