// Ops on states of fixed size: `short_conv` and `delta_rule`. A thread has
// columns of the state of its own, so that rows follow each other without
// waiting.

#include "targets/cuda/codegen/Lowering.h"
#include <cmath>

namespace izhc::cuda {

using namespace mlir;

namespace {

// One sequence of a step: its rows, and the address of its slot.
struct Sequence {
  Value first, end, slot, isNew;

  Sequence(Block &block, Value sequences, Value state, Value index) {
    KernelBuilder &k = block.k;
    Value entry = k.at(block.address(sequences), k.mul(index, 16));
    auto field = [&](int64_t i) { return loadIndex(k, entry, k.constI64(i)); };
    auto type = cast<pack::SlotsType>(state.getType());
    first = field(0);
    end = k.add(first, field(1));
    isNew = k.equal(field(2), k.constI64(0));
    slot = k.at(block.address(state), k.mul(field(3), type.getSlotBytes()));
  }
};

} // namespace

LogicalResult emitShortConv(Block &block, pack::ShortConvOp op) {
  KernelBuilder &k = block.k;
  int64_t width = Block::widthOf(op.getInput()), columns = pack::ShortConvOp::kColumns;
  int64_t taps = cast<MemRefType>(op.getWeight().getType()).getDimSize(0) / width;
  int64_t blocks = llvm::divideCeil(width, columns);
  Sequence sequence(block, op.getSequences(), op.getState(), k.div(block.unit, blocks));
  Value first = k.mul(k.rem(block.unit, blocks), columns);
  Value count = k.min(k.constI64(columns), k.sub(k.constI64(width), first));
  block.forThreads(count, [&](Value i) {
    Value column = k.add(first, i);
    auto kept = [&](int64_t j) { return k.add(column, j * width); };
    k.ifThen(sequence.isNew, [&] {
      for (int64_t j = 0; j + 1 < taps; ++j)
        storeFloat(k, k.zero(k.f32()), sequence.slot, kept(j));
    });
    k.loop(sequence.first, sequence.end, 1, [&](Value row) {
      Value input = loadFloat(k, block.rowOf(op.getInput(), row), column);
      Value total = k.zero(k.f32());
      Block::Values past;
      for (int64_t j = 0; j + 1 < taps; ++j)
        past.push_back(loadFloat(k, sequence.slot, kept(j)));
      past.push_back(input);
      for (int64_t j = 0; j < taps; ++j) {
        Value at = k.add(k.mul(column, taps), j);
        total = k.mulAdd(loadFloat(k, block.address(op.getWeight()), at), past[j], total);
      }
      storeFloat(k, op.getSilu() ? k.silu(total) : total, block.rowOf(op.getInto(), row), column);
      for (int64_t j = 0; j + 1 < taps; ++j)
        storeFloat(k, past[j + 1], sequence.slot, kept(j));
    });
  });
  return success();
}

namespace {

// One head of one sequence of `delta_rule`.
struct DeltaEmitter {
  Block &block;
  pack::DeltaRuleOp op;
  KernelBuilder &k;
  int64_t heads, keyHeads, keyDim, valueDim;
  Value head, memory;

  DeltaEmitter(Block &block, pack::DeltaRuleOp op)
      : block(block), op(op), k(block.k), heads(Block::widthOf(op.getDecay())),
        keyHeads(op.getKeyHeads()), keyDim(op.getKeyDim()), valueDim(op.getValueDim()) {}

  // 1 / the length of the key or query at `at`, in every lane of each warp.
  Value inverseLength(Value at) {
    Value squares = k.loop(block.lane, k.constI64(keyDim), k.constI64(kWarp), {k.zero(k.f32())},
                           [&](Value i, ArrayRef<Value> carried) {
                             Value x = loadFloat(k, at, i);
                             return Block::Values{k.mulAdd(x, x, carried[0])};
                           })[0];
    Value eps = k.constFloat(k.f32(), op.getEps().convertToFloat());
    return k.div(k.constFloat(k.f32(), 1), k.sqrt(k.add(block.warpSum(squares), eps)));
  }

  // Sums term(i) over the keys.
  Value overKeys(llvm::function_ref<Value(Value i)> term) {
    return k.loop(k.constI64(0), k.constI64(keyDim), k.constI64(1), {k.zero(k.f32())},
                  [&](Value i, ArrayRef<Value> carried) {
                    return Block::Values{k.add(carried[0], term(i))};
                  })[0];
  }

  void emitRow(Value row) {
    Value keyHead = op.getTiled() ? k.rem(head, keyHeads) : k.div(head, heads / keyHeads);
    Value query = k.at(block.rowOf(op.getMixed(), row), k.mul(keyHead, 4 * keyDim));
    Value key = k.at(query, 4 * keyHeads * keyDim);
    Value value = k.at(block.rowOf(op.getMixed(), row), 8 * keyHeads * keyDim);
    value = k.at(value, k.mul(head, 4 * valueDim));
    Value q = k.mul(inverseLength(query), k.constFloat(k.f32(), 1 / std::sqrt(double(keyDim))));
    Value unitKey = inverseLength(key);
    Value step = k.softplus(k.add(loadFloat(k, block.rowOf(op.getDecay(), row), head),
                                  loadFloat(k, block.address(op.getBias()), head)));
    Value kept = k.exp(k.mul(loadFloat(k, block.address(op.getRate()), head), step));
    Value share = k.sigmoid(loadFloat(k, block.rowOf(op.getBeta(), row), head));
    Value out = k.at(block.rowOf(op.getInto(), row), k.mul(head, 4 * valueDim));
    block.forThreads(valueDim, [&](Value j) {
      auto cell = [&](Value i) { return k.add(k.mul(i, valueDim), j); };
      auto keyAt = [&](Value i) { return k.mul(loadFloat(k, key, i), unitKey); };
      Value found = overKeys([&](Value i) {
        Value old = k.mul(loadFloat(k, memory, cell(i)), kept);
        storeFloat(k, old, memory, cell(i));
        return k.mul(old, keyAt(i));
      });
      Value change = k.mul(share, k.sub(loadFloat(k, value, j), found));
      Value result = overKeys([&](Value i) {
        Value next = k.add(loadFloat(k, memory, cell(i)), k.mul(keyAt(i), change));
        storeFloat(k, next, memory, cell(i));
        return k.mul(next, k.mul(loadFloat(k, query, i), q));
      });
      storeFloat(k, result, out, j);
    });
  }
};

} // namespace

LogicalResult emitDeltaRule(Block &block, pack::DeltaRuleOp op) {
  KernelBuilder &k = block.k;
  DeltaEmitter emitter(block, op);
  Sequence sequence(block, op.getSequences(), op.getState(), k.div(block.unit, emitter.heads));
  int64_t floats = emitter.keyDim * emitter.valueDim;
  emitter.head = k.rem(block.unit, emitter.heads);
  emitter.memory = k.at(sequence.slot, k.mul(emitter.head, 4 * floats));
  k.ifThen(sequence.isNew, [&] {
    block.forThreads(floats, [&](Value i) { storeFloat(k, k.zero(k.f32()), emitter.memory, i); });
  });
  block.barrier();
  k.loop(sequence.first, sequence.end, 1, [&](Value row) { emitter.emitRow(row); });
  return success();
}

} // namespace izhc::cuda
