#include "targets/cuda/codegen/AttentionSums.h"

namespace izhc::cuda {

using namespace mlir;

Value spanAfter(KernelBuilder &k, Value key) {
  return k.div(k.add(key, pack::KvLayout::kSpan - 1), pack::KvLayout::kSpan);
}

Value windowStart(KernelBuilder &k, Value end, int64_t window) {
  return window ? k.max(k.add(end, -window), k.constI64(0)) : k.constI64(0);
}

Block::Values packAll(ArrayRef<Sums> sums) {
  Block::Values all;
  for (const Sums &one : sums)
    all.append(one.pack());
  return all;
}

SmallVector<Sums> unpackAll(ArrayRef<Value> all, int64_t columns) {
  SmallVector<Sums> sums;
  for (; !all.empty(); all = all.drop_front(2 + columns))
    sums.push_back(Sums::unpack(all.take_front(2 + columns)));
  return sums;
}

Sums merge(KernelBuilder &k, const Sums &all, const Sums &span) {
  Value most = k.max(all.maximum, span.maximum);
  Value c = k.exp(k.sub(all.maximum, most)), f = k.exp(k.sub(span.maximum, most));
  auto fold = [&](Value old, Value added) { return k.mulAdd(old, c, k.mul(added, f)); };
  Sums result = {most, fold(all.sum, span.sum), {}};
  for (auto [old, added] : llvm::zip(all.columns, span.columns))
    result.columns.push_back(fold(old, added));
  return result;
}

Sums mergeSpans(KernelBuilder &k, Value first, Value last, int64_t together, const Sums &before,
                llvm::function_ref<Sums(Value)> read) {
  return Sums::unpack(k.loop(first, last, k.constI64(together), before.pack(),
                             [&](Value span, ArrayRef<Value> carried) {
                               SmallVector<Sums> some;
                               for (int64_t i = 0; i < together; ++i)
                                 some.push_back(read(k.min(k.add(span, i), k.add(last, -1))));
                               Block::Values sums(carried.begin(), carried.end());
                               for (auto [i, one] : llvm::enumerate(some)) {
                                 Value there = k.less(k.add(span, int64_t(i)), last);
                                 Block::Values next = merge(k, Sums::unpack(sums), one).pack();
                                 for (auto [old, changed] : llvm::zip(sums, next))
                                   old = k.select(there, changed, old);
                               }
                               return sums;
                             }));
}

Value finalFactor(KernelBuilder &k, const Sums &sums, Value sink) {
  Value total = sums.sum, factor = k.constFloat(k.f32(), 1.0);
  if (sink) {
    Value most = k.max(sums.maximum, sink);
    factor = k.exp(k.sub(sums.maximum, most));
    total = k.add(k.mul(total, factor), k.exp(k.sub(sink, most)));
  }
  return k.div(factor, total);
}

} // namespace izhc::cuda
