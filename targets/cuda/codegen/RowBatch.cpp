// A warp reads a tile with 16 lanes for its rows, twice: the two halves take
// alternate runs of the columns.

#include "targets/cuda/codegen/RowBatch.h"

namespace izhc::cuda {

using namespace mlir;

static constexpr int64_t kTile = PackedLayout::kTileRows;

Value RowBatch::place(Value part, Value record, Value row) {
  Value number = k.add(k.mul(record, parts), part);
  return k.add(k.mul(number, rows()), row);
}

void RowBatch::compute(const Weights &weights, Value tile, Value count,
                       llvm::ArrayRef<Value> records, pack::ActType act) {
  int64_t together = std::max<int64_t>(1, block.warps() / parts);
  Value row = k.rem(block.lane, kTile), half = k.div(block.lane, kTile);
  Value part = k.rem(block.warp, parts), first = k.div(block.warp, parts);
  // Warps beyond the last whole group of parts have nothing to do.
  first = k.select(k.less(first, k.constI64(together)), first, count);
  k.loop(first, count, together, [&](Value i) {
    Value address = k.at(tile, k.mul(i, weights.tileBytes()));
    auto found = weights.dot(address, row, k.add(k.mul(part, 2), half), 2 * parts, records, act);
    for (auto [number, sum] : llvm::enumerate(found)) {
      Value both = k.add(sum, block.exchange(sum, kTile));
      k.ifThen(k.less(block.lane, k.constI64(kTile)), [&] {
        storeFloat(k, both, sums, place(part, k.constI64(number), k.add(k.mul(i, kTile), row)));
      });
    }
  });
  block.barrier();
}

Value RowBatch::product(Value record, Value row) {
  Value total;
  for (int64_t part = 0; part < parts; ++part) {
    Value one = loadFloat(k, sums, place(k.constI64(part), record, row));
    total = total ? k.add(total, one) : one;
  }
  return total;
}

} // namespace izhc::cuda
