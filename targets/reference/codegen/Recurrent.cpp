// Ops on states of fixed size: `short_conv` and `delta_rule`.

#include "targets/reference/codegen/Lowering.h"
#include <cmath>

namespace izhc::reference {

using namespace mlir;

namespace {

int64_t widthOf(Value buffer) { return rowBytes(buffer) / 4; }

// Calls body(slot's address, row) for each row of the sequence `index`, in
// order; before the sequence's first token all floats of its slot become zero.
void forEachRow(KernelFrameBase &frame, Value sequences, Value state, Value index,
                int64_t firstFloat, int64_t floats, Value part,
                llvm::function_ref<void(Value slot, Value row)> body) {
  KernelBuilder &k = frame.k;
  Value entry = k.at(frame.address(sequences), k.mul(index, 16));
  auto field = [&](int64_t i) { return loadIndex(k, entry, k.constI64(i)); };
  auto type = cast<pack::SlotsType>(state.getType());
  Value slot = k.at(frame.address(state), k.mul(field(3), type.getSlotBytes()));
  Value start = k.mul(part, firstFloat);
  k.ifThen(k.equal(field(2), k.constI64(0)), [&] {
    k.loop(k.constI64(0), k.constI64(floats), 1,
           [&](Value i) { storeFloat(k, k.zero(k.f32()), slot, k.add(start, i)); });
  });
  k.loop(field(0), k.add(field(0), field(1)), 1, [&](Value row) { body(slot, row); });
}

} // namespace

LogicalResult emitShortConv(KernelFrameBase &frame, pack::ShortConvOp op) {
  KernelBuilder &k = frame.k;
  int64_t width = widthOf(op.getInput()), columns = pack::ShortConvOp::kColumns;
  int64_t taps = cast<MemRefType>(op.getWeight().getType()).getDimSize(0) / width;
  int64_t blocks = llvm::divideCeil(width, columns);
  auto type = cast<pack::SlotsType>(op.getState().getType());
  k.loop(frame.begin, frame.end, 1, [&](Value unit) {
    Value entry = k.at(frame.address(op.getSequences()), k.mul(k.div(unit, blocks), 16));
    auto field = [&](int64_t i) { return loadIndex(k, entry, k.constI64(i)); };
    Value slot = k.at(frame.address(op.getState()), k.mul(field(3), type.getSlotBytes()));
    Value isFirst = k.equal(field(2), k.constI64(0));
    Value first = k.mul(k.rem(unit, blocks), columns);
    Value end = k.min(k.add(first, columns), k.constI64(width));
    k.loop(first, end, 1, [&](Value column) {
      auto kept = [&](int64_t j) { return k.add(column, j * width); };
      k.ifThen(isFirst, [&] {
        for (int64_t j = 0; j + 1 < taps; ++j)
          storeFloat(k, k.zero(k.f32()), slot, kept(j));
      });
      k.loop(field(0), k.add(field(0), field(1)), 1, [&](Value row) {
        Value at = k.add(k.mul(row, width), column);
        Value input = loadFloat(k, frame.address(op.getInput()), at), total = k.zero(k.f32());
        for (int64_t j = 0; j < taps; ++j) {
          Value weight = loadFloat(k, frame.address(op.getWeight()), k.add(k.mul(column, taps), j));
          Value x = j + 1 < taps ? loadFloat(k, slot, kept(j)) : input;
          total = k.add(total, k.mul(weight, x));
        }
        storeFloat(k, op.getSilu() ? k.silu(total) : total, frame.address(op.getInto()), at);
        for (int64_t j = 0; j + 1 < taps; ++j)
          storeFloat(k, j + 2 < taps ? loadFloat(k, slot, kept(j + 1)) : input, slot, kept(j));
      });
    });
  });
  return success();
}

LogicalResult emitDeltaRule(KernelFrameBase &frame, pack::DeltaRuleOp op) {
  KernelBuilder &k = frame.k;
  int64_t heads = widthOf(op.getDecay()), keyHeads = op.getKeyHeads();
  int64_t keyDim = op.getKeyDim(), valueDim = op.getValueDim();
  int64_t keys = keyHeads * keyDim, floats = keyDim * valueDim;
  Value zero = k.constI64(0), keyEnd = k.constI64(keyDim), valueEnd = k.constI64(valueDim);
  k.loop(frame.begin, frame.end, 1, [&](Value unit) {
    Value head = k.rem(unit, heads);
    Value keyHead = op.getTiled() ? k.rem(head, keyHeads) : k.div(head, heads / keyHeads);
    auto token = [&](Value slot, Value row) {
      Value mixed = k.at(frame.address(op.getMixed()), k.mul(row, rowBytes(op.getMixed())));
      Value query = k.at(mixed, k.mul(keyHead, 4 * keyDim)), key = k.at(query, 4 * keys);
      Value value = k.at(k.at(mixed, 8 * keys), k.mul(head, 4 * valueDim));
      auto inverseLength = [&](Value at) {
        Value squares = sum(k, k.f32(), keyEnd, [&](Value i) {
          Value x = loadFloat(k, at, i);
          return k.mul(x, x);
        });
        Value eps = k.constFloat(k.f32(), op.getEps().convertToFloat());
        return k.div(k.constFloat(k.f32(), 1), k.sqrt(k.add(squares, eps)));
      };
      Value q = k.mul(inverseLength(query), k.constFloat(k.f32(), 1 / std::sqrt(double(keyDim))));
      Value unitKey = inverseLength(key);
      Value number = k.add(k.mul(row, heads), head);
      Value step = k.softplus(k.add(loadFloat(k, frame.address(op.getDecay()), number),
                                    loadFloat(k, frame.address(op.getBias()), head)));
      Value kept = k.exp(k.mul(loadFloat(k, frame.address(op.getRate()), head), step));
      Value share = k.sigmoid(loadFloat(k, frame.address(op.getBeta()), number));
      Value memory = k.at(slot, k.mul(head, 4 * floats));
      Value out = k.at(frame.address(op.getInto()), k.mul(row, 4 * heads * valueDim));
      k.loop(zero, valueEnd, 1, [&](Value j) {
        auto cell = [&](Value i) { return k.add(k.mul(i, valueDim), j); };
        Value found = sum(k, k.f32(), keyEnd, [&](Value i) {
          Value old = k.mul(loadFloat(k, memory, cell(i)), kept);
          storeFloat(k, old, memory, cell(i));
          return k.mul(old, k.mul(loadFloat(k, key, i), unitKey));
        });
        Value change = k.mul(share, k.sub(loadFloat(k, value, j), found));
        Value result = sum(k, k.f32(), keyEnd, [&](Value i) {
          Value add = k.mul(k.mul(loadFloat(k, key, i), unitKey), change);
          Value next = k.add(loadFloat(k, memory, cell(i)), add);
          storeFloat(k, next, memory, cell(i));
          return k.mul(next, k.mul(loadFloat(k, query, i), q));
        });
        storeFloat(k, result, k.at(out, k.mul(head, 4 * valueDim)), j);
      });
    };
    forEachRow(frame, op.getSequences(), op.getState(), k.div(unit, heads), floats, floats, head,
               token);
  });
  return success();
}

} // namespace izhc::reference
