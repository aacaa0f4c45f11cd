// A warp reads a tile with 16 lanes for its rows, twice: the two halves take
// different spans of the columns.

#include "targets/cuda/codegen/RowBatch.h"

namespace izhc::cuda {

using namespace mlir;

static constexpr int64_t kTile = PackedLayout::kTileRows;

Value RowBatch::place(Value slot, Value record, Value row) {
  Value number = k.add(k.mul(record, slots), slot);
  return k.add(k.mul(number, rows()), row);
}

void RowBatch::keep(const Values &found, Value slot, Value row, Value condition) {
  auto store = [&] {
    for (auto [number, sum] : llvm::enumerate(found))
      storeFloat(k, sum, sums, place(slot, k.constI64(number), row));
  };
  if (condition)
    k.ifThen(condition, store);
  else
    store();
}

void RowBatch::compute(const Weights &weights, Value tile, Value count,
                       llvm::ArrayRef<Value> records, pack::ActType act) {
  int64_t together = std::max<int64_t>(1, block.warps() / parts);
  Value row = k.rem(block.lane, kTile), half = k.div(block.lane, kTile);
  Value part = k.rem(block.warp, parts), first = k.div(block.warp, parts);
  Value end = k.constI64(spans.count());
  // Warps beyond the last whole group of parts have nothing to do.
  first = k.select(k.less(first, k.constI64(together)), first, count);
  k.loop(first, count, together, [&](Value i) {
    Value address = k.at(tile, k.mul(i, weights.tileBytes())), inAll = k.add(k.mul(i, kTile), row);
    if (parts > 1)
      return k.loop(k.add(k.mul(part, 2), half), end, 2 * parts, [&](Value span) {
        keep(weights.dot(address, row, span, records, act), span, inAll, {});
      });
    // A span beyond the last has no columns and adds 0.
    Values zeros(records.size(), k.zero(k.f32()));
    Value isFirst = k.equal(half, k.constI64(0));
    auto totals = k.loop(k.constI64(0), end, k.constI64(2), zeros, [&](Value pair, auto carried) {
      Values next, found = weights.dot(address, row, k.add(pair, half), records, act);
      for (auto [total, sum] : llvm::zip(carried, found)) {
        Value other = block.exchange(sum, kTile);
        Value both = k.add(total, k.select(isFirst, sum, other));
        next.push_back(k.add(both, k.select(isFirst, other, sum)));
      }
      return next;
    });
    keep(totals, k.constI64(0), inAll, isFirst);
  });
  block.barrier();
}

Value RowBatch::product(Value record, Value row) {
  Value total;
  for (int64_t slot = 0; slot < slots; ++slot) {
    Value one = loadFloat(k, sums, place(k.constI64(slot), record, row));
    total = total ? k.add(total, one) : one;
  }
  return total;
}

} // namespace izhc::cuda
