// Products of tiles of 16 rows with some records at a time: warps share tiles or
// divide a tile's columns, and what they found meets in shared memory.

#pragma once

#include "targets/cuda/codegen/Weights.h"

namespace izhc::cuda {

class RowBatch {
public:
  using Value = mlir::Value;
  using Values = KernelBuilder::Values;

  // For up to `tiles` tiles and `records` records at a time.
  RowBatch(Block &block, int64_t tiles, int64_t records, Spans spans)
      : block(block), k(block.k), tiles(tiles), parts(std::max<int64_t>(1, block.warps() / tiles)),
        slots(parts == 1 ? 1 : spans.count()), spans(spans),
        sums(block.shared(4 * slots * records * rows())) {}

  int64_t rows() const { return tiles * PackedLayout::kTileRows; }

  // Leaves the products of the first `count` tiles from `tile` on (an address)
  // with `records`. All threads call it; with a barrier.
  void compute(const Weights &weights, Value tile, Value count, llvm::ArrayRef<Value> records,
               pack::ActType act);
  // Of row `row` of the tiles and record number `record`, after compute.
  Value product(Value record, Value row);
  // Before the next compute.
  void release() { block.barrier(); }

private:
  Value place(Value slot, Value record, Value row);
  void keep(const Values &found, Value slot, Value row, Value condition);

  Block &block;
  KernelBuilder &k;
  // Warps that share a tile; where there are several, sums of spans have slots.
  int64_t tiles, parts, slots;
  Spans spans;
  Value sums; // [record][slot][row]
};

} // namespace izhc::cuda
