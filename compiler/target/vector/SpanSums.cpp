// Merging of spans, and pack.merge, which does nothing else.

#include "compiler/target/vector/SpanSums.h"
#include "compiler/target/vector/Hadamard.h"
#include "compiler/target/vector/Pieces.h"

namespace izhc {

using namespace mlir;
using pack::KvLayout;

void SpanSums::clear(Value maximum, Value sum, Value outputs) {
  k.store(k.constFloat(k.f32(), kMasked), maximum, 4);
  k.store(k.zero(k.f32()), sum, 4);
  k.loop(k.constI64(0), k.constI64(outputBytes()), 4 * lanes,
         [&](Value offset) { k.store(k.zero(k.vec(lanes, k.f32())), k.at(outputs, offset), 4); });
}

std::pair<Value, Value> SpanSums::merge(Value maximum, Value sum, Value spanMaximum,
                                        Value spanSum) {
  Value before = k.load(k.f32(), maximum, 4);
  Value most = k.max(before, spanMaximum);
  Value factor = k.exp(k.sub(before, most)), spanFactor = k.exp(k.sub(spanMaximum, most));
  k.store(most, maximum, 4);
  k.store(fold(k.load(k.f32(), sum, 4), factor, spanSum, spanFactor), sum, 4);
  return {factor, spanFactor};
}

void SpanSums::quotient(Value maximum, Value sum, Value outputs, Value head, Value row) {
  Value total = k.load(k.f32(), sum, 4), factor = k.constFloat(k.f32(), 1.0);
  if (sinks) {
    Value before = k.load(k.f32(), maximum, 4);
    Value sink = k.load(k.f32(), k.at(sinks, k.mul(head, 4)), 4);
    Value most = k.max(before, sink);
    factor = k.exp(k.sub(before, most));
    total = k.mulAdd(total, factor, k.exp(k.sub(sink, most)));
  }
  if (type.isTurned())
    emitHadamard(k, outputs, type.getValueDim(), lanes);
  Value inverse = k.div(factor, total);
  forEachPiece(k, type.getValueDim(), lanes, [&](Value offset, int64_t piece) {
    Value value = k.load(k.vec(piece, k.f32()), k.at(outputs, offset), 4);
    k.store(k.mul(value, k.splat(inverse, piece)), k.at(row, offset), 4);
  });
}

llvm::LogicalResult emitMerge(KernelFrame &frame, pack::MergeOp op) {
  KernelBuilder &k = frame.k;
  auto kv = cast<pack::KvType>(op.getCache().getType());
  int64_t heads = op.getHeads(), lanes = frame.machine.lanes, window = op.getWindow();
  int64_t record = KvLayout(kv).partialBytes();
  SpanSums sums(k, kv, lanes, op.getSinks() ? frame.address(op.getSinks()) : Value());
  Value maximum = k.stack(64), sum = k.stack(64), outputs = k.stack(sums.outputBytes());
  Value merges = frame.address(op.getMerges()), partials = frame.address(op.getPartials());
  Type floats = k.vec(lanes, k.f32());
  k.loop(frame.begin, frame.end, 1, [&](Value unit) {
    Value head = k.rem(unit, heads), entry = k.at(merges, k.mul(k.div(unit, heads), 16));
    auto word = [&](int64_t i) {
      return k.extendS(k.load(k.i32(), k.at(entry, 4 * i), 4), k.i64());
    };
    Value row = word(0), position = word(1), place = word(2), step = word(3);
    Value first = k.constI64(0), end = k.add(k.div(position, KvLayout::kSpan), 1);
    if (window)
      first = k.div(k.max(k.add(position, 1 - window), first), KvLayout::kSpan);
    sums.clear(maximum, sum, outputs);
    k.loop(first, end, 1, [&](Value span) {
      Value number = k.add(k.mul(k.add(place, k.mul(span, step)), heads), head);
      Value from = k.at(partials, k.mul(number, record));
      auto [factor, spanFactor] =
          sums.merge(maximum, sum, k.load(k.f32(), from, 4), k.load(k.f32(), k.at(from, 4), 4));
      Value before = k.splat(factor, lanes), added = k.splat(spanFactor, lanes);
      Value values = k.at(from, KvLayout::kPartialValues);
      k.loop(k.constI64(0), k.constI64(sums.outputBytes()), 4 * lanes, [&](Value offset) {
        Value at = k.at(outputs, offset), span = k.load(floats, k.at(values, offset), 4);
        k.store(sums.fold(k.load(floats, at, 4), before, span, added), at, 4);
      });
    });
    Value into = k.add(k.mul(row, heads), head);
    sums.quotient(maximum, sum, outputs, head,
                  k.at(frame.address(op.getInto()), k.mul(into, 4 * kv.getValueDim())));
  });
  return success();
}

} // namespace izhc
