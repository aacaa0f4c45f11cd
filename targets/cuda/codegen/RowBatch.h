// Products of tiles of 16 rows with some records at a time: warps share tiles or
// divide a tile's columns, and what they found meets in shared memory.

#pragma once

#include "targets/cuda/codegen/Weights.h"

namespace izhc::cuda {

class RowBatch {
public:
  using Value = mlir::Value;

  // For up to `tiles` tiles and `records` records at a time.
  RowBatch(Block &block, int64_t tiles, int64_t records)
      : block(block), k(block.k), tiles(tiles), parts(std::max<int64_t>(1, block.warps() / tiles)),
        sums(block.shared(4 * parts * records * rows())) {}

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
  Value place(Value part, Value record, Value row);

  Block &block;
  KernelBuilder &k;
  int64_t tiles, parts;
  Value sums; // [record][part][row]
};

} // namespace izhc::cuda
