// Products of a pair of tiles with one record, from weights that lie in shared
// memory as in the tiles. The columns of a matrix instruction, which are records in
// PairDot, are runs here: eight neighbouring runs of columns are multiplied with a
// matrix that has the activations of run i in its column i and zeroes else, so that
// a lane gets products of other runs than its neighbours, and scales each product but
// once. The order of additions is that of Spans.h.

#pragma once

#include "targets/cuda/codegen/PairDot.h"

namespace izhc::cuda {

class RowDot : public PairDot {
public:
  // Chunks of a stage, which lies in shared memory at a time.
  static constexpr int64_t kStageChunks = 4;

  // `present`: chunks that a stage has room for, where units are chunks.
  RowDot(Block &block, pack::WeightType type, pack::ActType act, int64_t present);

  // Of a stage, for a tile.
  static int64_t stageBytes(pack::WeightType type, int64_t present);
  // Whether stages are whole units of several chunks: they begin with a multiple
  // of kStageChunks.
  static bool isWholeUnit(pack::WeightType type);
  static int64_t unitBytes(pack::WeightType type);

  // Memory that the lanes of a warp exchange products in.
  static constexpr int64_t exchangeBytes() { return 4 * kLine * kWarp; }

  // Where the stage of the lane's tile is, and what it has: chunk number `first` of the
  // tile and following; of these only numbers from .. to - 1 count (null: all do).
  struct Stage {
    Value address, first, from, to;
  };
  // `sum` and the stage's terms, for the lane's row of the pair: row number lane. `last`:
  // of the chunks of the record. All lanes call it. What lies in the stage has
  // been read when it ends, by all lanes.
  Value add(const Stage &stage, Value record, int64_t last, Value exchange, Value sum) const;

private:
  static constexpr int64_t kRuns = 8, kLine = 12; // floats of a row's products, with a gap

  // Chunks of eight runs.
  int64_t groupChunks() const { return kRuns * runWeights() / Spans::kChunk; }
  int64_t perChunk() const { return Spans::kChunk / runWeights(); }
  // Whether chunk `chunk` of the stage counts; null: it does.
  Value counts(const Stage &stage, Value chunk) const;
  Value addGroup(const Stage &stage, int64_t base, Value record, int64_t last, Value exchange,
                 Value sum) const;
  // The lane's activations of a run, as a matrix instruction takes them.
  Values activations(const Stage &stage, int64_t base, Value record, int64_t last) const;
  // What the sums of codes of the lane's two runs begin with.
  Values starts(const Stage &stage, int64_t base, Value lanesChunk, Value record,
                int64_t last) const;
  // The codes of 32 columns of the lane's four rows.
  Words run32(const Stage &stage, int64_t chunk, int64_t run) const;
  Words scalesOf(const Stage &stage, Value lanesChunk) const;
  // Values of the lane's four rows and two runs to those of all eight runs for its own
  // row.
  Values transpose(llvm::ArrayRef<Value> values, Value exchange) const;
  Value clamped(const Stage &stage, Value run, int64_t last) const;

  int64_t present;
};

} // namespace izhc::cuda
