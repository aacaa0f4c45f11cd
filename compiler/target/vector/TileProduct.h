// The product of one weight tile (16 rows) with a few rows of activations.

#pragma once

#include "compiler/target/vector/ActSums.h"
#include "compiler/target/vector/VectorLowering.h"

namespace izhc {

class TileProduct {
public:
  using Value = mlir::Value;

  // `scratch` is stack memory of kScratchBytes, shared by all products of a function.
  // Sub-scales of a unit of 256, then its codes where they are expanded.
  static constexpr int64_t kScratchBytes =
      WeightReader::kCodesInScratch + 256 * PackedLayout::kTileRows;
  // `rowStride`: from one row's record to the next (0: they lie side by side).
  TileProduct(KernelFrame &frame, const FormatSpec &format, pack::ActType act, int64_t cols,
              Value scratch, int64_t rowStride = 0);

  int64_t tileBytes() const { return reader.layout.tileBytes(cols); }
  int64_t actStride() const { return act.stride; }

  // Writes sum over k of weight[i, k] * act[r, k] for rows i 0..15 of the tile
  // and r 0..rows-1 to out + r * outStride + 4 * i. `first` is the record of
  // row 0. For a given tile and row the order of operations is the same for
  // every `rows`, so results don't depend on how rows are grouped.
  void emit(Value tile, Value first, int64_t rows, Value out, int64_t outStride);

private:
  using Values = llvm::SmallVector<Value>;
  // Where the parts computed together begin.
  struct Parts {
    int64_t count;
    Value bytes, halves, scratch;
  };
  // Addresses of activations that belong to a unit or chunk, all of row 0.
  struct ActPlace {
    Value codes, scales, exponents, sums, sums16, corr;
  };

  void emitParts(Parts parts, Value first, int64_t rows, Value out, int64_t outStride);
  Values floatUnits(const Parts &parts, Value first, int64_t rows);
  Values expandedUnits(const Parts &parts, Value first, int64_t rows);
  Values block32Units(const Parts &parts, Value first, int64_t rows);
  Values block16Units(const Parts &parts, Value first, int64_t rows);
  Values block256Units(const Parts &parts, Value first, int64_t rows);

  Values dots(llvm::MutableArrayRef<WeightReader::Planes> planes, llvm::ArrayRef<Value> bytes,
              const ActPlace &place, int64_t rows, int64_t kk, int64_t count);
  void expandBlock(llvm::ArrayRef<Value> bytes, llvm::ArrayRef<Value> scales,
                   llvm::ArrayRef<Value> minima, Value values, int64_t rows, int64_t kk,
                   int64_t count, llvm::MutableArrayRef<WeightReader::Planes> planes, Values &sums);
  // Scales and negative minima of a unit of 256, one of each part.
  struct Heads {
    Values scales, minima;
  };
  void chunkOfBlock256(const Parts &parts, const Heads &heads, Value unit, Value chunk,
                       const ActPlace &place, int64_t rows, Values &sums);
  void unpackUnit(const Parts &parts, llvm::ArrayRef<Value> bytes, llvm::ArrayRef<Value> halves);
  Value codesOf(const Parts &parts, Value unit);
  ActPlace placeOf(Value first, Value chunk);
  Value rowValue(mlir::Type element, Value base, int64_t row, int64_t offset);
  Values zeros(int64_t count);
  // Fetches `count` bytes that lie 8 KiB behind `place`, a multiple of 64.
  void fetchAhead(int64_t rows, Value place, int64_t count);
  // Addresses of each part: base + step * part.
  Values spread(Value base, int64_t count, int64_t step);

  KernelFrame &frame;
  KernelBuilder &k;
  WeightReader reader;
  pack::ActType type;
  pack::ActLayout act;
  ActSums fields;
  int64_t cols, lanes;
  Value scratch;
};

// Calls `body` for groups of rows that cover 0..count: as many of the largest
// of `tiles` as fit, then of the next, and so on (the last is 1).
void forRowGroups(KernelBuilder &k, llvm::ArrayRef<int64_t> tiles, mlir::Value count,
                  llvm::function_ref<void(mlir::Value first, int64_t rows)> body);

} // namespace izhc
