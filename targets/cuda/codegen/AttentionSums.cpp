#include "targets/cuda/codegen/AttentionSums.h"

namespace izhc::cuda {

using namespace mlir;

Value spanAfter(KernelBuilder &k, Value key) {
  return k.div(k.add(key, pack::KvLayout::kSpan - 1), pack::KvLayout::kSpan);
}

Value windowStart(KernelBuilder &k, Value end, int64_t window) {
  return window ? k.max(k.add(end, -window), k.constI64(0)) : k.constI64(0);
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
