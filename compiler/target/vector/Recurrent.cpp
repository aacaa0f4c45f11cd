// pack.short_conv and pack.delta_rule: states of fixed size, one slot a
// sequence. Tokens of a sequence are taken one by one, columns in lanes.

#include "compiler/target/vector/Pieces.h"
#include "compiler/target/vector/VectorLowering.h"
#include <cmath>

namespace izhc {

using namespace mlir;

namespace {

using Values = KernelBuilder::Values;

int64_t widthOf(Value buffer) { return cast<MemRefType>(buffer.getType()).getDimSize(1); }

// One entry of `sequences`.
struct Sequence {
  Value firstRow, end, slot, isFirst;
};

Sequence sequenceAt(KernelFrame &frame, Value sequences, Value index) {
  KernelBuilder &k = frame.k;
  Value entry = k.at(frame.address(sequences), k.mul(index, 16));
  auto word = [&](int64_t i) { return k.extendS(k.load(k.i32(), k.at(entry, 4 * i), 4), k.i64()); };
  Value firstRow = word(0);
  return {firstRow, k.add(firstRow, word(1)), word(3), k.equal(word(2), k.constI64(0))};
}

// The vector at `at`, or zeros for the first token of a sequence.
Value loadState(KernelBuilder &k, const Sequence &sequence, Type type, Value at) {
  Value mask = sequence.isFirst;
  if (auto vector = dyn_cast<VectorType>(type))
    mask = k.splat(mask, vector.getDimSize(0));
  return k.select(mask, k.zero(type), k.load(type, at, 4));
}

//===----------------------------------------------------------------------===//
// short_conv
//===----------------------------------------------------------------------===//

class ShortConv {
public:
  ShortConv(KernelFrame &frame, pack::ShortConvOp op)
      : frame(frame), k(frame.k), op(op), width(widthOf(op.getInput())) {
    taps = cast<MemRefType>(op.getWeight().getType()).getDimSize(0) / width;
    slotBytes = cast<pack::SlotsType>(op.getState().getType()).getSlotBytes();
  }

  void emit() {
    constexpr int64_t columns = pack::ShortConvOp::kColumns;
    int64_t whole = width / columns, rest = width % columns, blocks = whole + (rest != 0);
    k.loop(frame.begin, frame.end, 1, [&](Value unit) {
      Sequence sequence = sequenceAt(frame, op.getSequences(), k.div(unit, blocks));
      Value block = k.rem(unit, blocks), first = k.mul(block, columns);
      auto full = [&] { emitColumns(sequence, first, columns); };
      if (rest == 0)
        return full();
      k.ifThenElse(k.less(block, k.constI64(whole)), full,
                   [&] { emitColumns(sequence, first, rest); });
    });
  }

private:
  void emitColumns(const Sequence &sequence, Value first, int64_t count) {
    forEachPiece(k, count, frame.machine.lanes, [&](Value offset, int64_t piece) {
      emitPiece(sequence, k.add(k.mul(first, 4), offset), piece);
    });
  }

  // Weight j of each column of a piece; they lie taps apart.
  Values weights(Value offset, int64_t piece) {
    Value at = k.at(frame.address(op.getWeight()), k.mul(offset, taps));
    Values result;
    if (piece == 0) {
      for (int64_t j = 0; j < taps; ++j)
        result.push_back(k.load(k.f32(), k.at(at, 4 * j), 4));
      return result;
    }
    Value all = k.load(k.vec(piece * taps, k.f32()), at, 4);
    for (int64_t j = 0; j < taps; ++j) {
      SmallVector<int64_t> lanes;
      for (int64_t i = 0; i < piece; ++i)
        lanes.push_back(i * taps + j);
      result.push_back(k.shuffle(all, all, lanes));
    }
    return result;
  }

  // `offset` is that of the piece in a row.
  void emitPiece(const Sequence &sequence, Value offset, int64_t piece) {
    Type type = k.vec(piece, k.f32());
    Values factors = weights(offset, piece), inits;
    Value slot = k.at(k.at(frame.address(op.getState()), k.mul(sequence.slot, slotBytes)), offset);
    for (int64_t j = 0; j + 1 < taps; ++j)
      inits.push_back(loadState(k, sequence, type, k.at(slot, 4 * width * j)));
    Values last = k.loop(
        sequence.firstRow, sequence.end, k.constI64(1), inits,
        [&](Value row, ArrayRef<Value> earlier) {
          Value at = k.add(k.mul(row, 4 * width), offset);
          Values inputs(earlier.begin(), earlier.end());
          inputs.push_back(k.load(type, k.at(frame.address(op.getInput()), at), 4));
          Value sum = k.mul(factors[0], inputs[0]);
          for (int64_t j = 1; j < taps; ++j)
            sum = k.mulAdd(factors[j], inputs[j], sum);
          k.store(op.getSilu() ? k.silu(sum) : sum, k.at(frame.address(op.getInto()), at), 4);
          return Values(inputs.begin() + 1, inputs.end());
        });
    for (int64_t j = 0; j + 1 < taps; ++j)
      k.store(last[j], k.at(slot, 4 * width * j), 4);
  }

  KernelFrame &frame;
  KernelBuilder &k;
  pack::ShortConvOp op;
  int64_t width, taps, slotBytes;
};

//===----------------------------------------------------------------------===//
// delta_rule
//===----------------------------------------------------------------------===//

// A block of columns of the memory stays in the first-level cache while all
// tokens pass over it; what a token says of the whole head is computed again for
// each block, which is little.
class DeltaRule {
public:
  DeltaRule(KernelFrame &frame, pack::DeltaRuleOp op)
      : frame(frame), k(frame.k), op(op), heads(widthOf(op.getDecay())), keyHeads(op.getKeyHeads()),
        keyDim(op.getKeyDim()), valueDim(op.getValueDim()) {}

  void emit() {
    int64_t slotBytes = cast<pack::SlotsType>(op.getState().getType()).getSlotBytes();
    k.loop(frame.begin, frame.end, 1, [&](Value unit) {
      Sequence sequence = sequenceAt(frame, op.getSequences(), k.div(unit, heads));
      head = k.rem(unit, heads);
      Value slot = k.at(frame.address(op.getState()), k.mul(sequence.slot, slotBytes));
      memory = k.at(slot, k.mul(head, 4 * keyDim * valueDim));
      k.ifThen(sequence.isFirst, [&] { clear(); });
      forEachPiece(k, valueDim, frame.machine.lanes, [&](Value offset, int64_t piece) {
        k.loop(sequence.firstRow, sequence.end, 1,
               [&](Value row) { emitToken(row, offset, piece); });
      });
    });
  }

private:
  void clear() {
    forEachPiece(k, keyDim * valueDim, frame.machine.lanes, [&](Value offset, int64_t piece) {
      k.store(k.zero(k.vec(piece, k.f32())), k.at(memory, offset), 4);
    });
  }

  // 1 / sqrt(sum of squares + eps) of the key head's values at `at`.
  Value inverseLength(Value at) {
    int64_t lanes = frame.machine.lanes, whole = keyDim / lanes * lanes;
    auto square = [&](Value place, int64_t piece, Value sum) {
      Value x = k.load(k.vec(piece, k.f32()), place, 4);
      return k.mulAdd(x, x, sum);
    };
    Value total = k.zero(k.f32());
    if (whole)
      total = k.sumLanes(k.loop(k.constI64(0), k.constI64(4 * whole), k.constI64(4 * lanes),
                                {k.zero(k.vec(lanes, k.f32()))},
                                [&](Value offset, ArrayRef<Value> carried) -> Values {
                                  return {square(k.at(at, offset), lanes, carried[0])};
                                })[0]);
    for (int64_t piece : tailPieces(keyDim - whole, lanes)) {
      Value sum = square(k.at(at, 4 * whole), piece, k.zero(k.vec(piece, k.f32())));
      total = k.add(total, piece ? k.sumLanes(sum) : sum);
      whole += pieceValues(piece);
    }
    Value eps = k.constFloat(k.f32(), op.getEps().convertToDouble());
    return k.div(k.constFloat(k.f32(), 1.0), k.sqrt(k.add(total, eps)));
  }

  // This head's number in a row of one number a head.
  Value perHead(Value rows, Value row) {
    Value at = k.add(k.mul(row, 4 * heads), k.mul(head, 4));
    return k.load(k.f32(), k.at(frame.address(rows), at), 4);
  }
  Value ofHead(Value vector) {
    return k.load(k.f32(), k.at(frame.address(vector), k.mul(head, 4)), 4);
  }

  void emitToken(Value row, Value offset, int64_t piece) {
    Type type = k.vec(piece, k.f32());
    int64_t keys = keyHeads * keyDim;
    Value mixed = k.at(frame.address(op.getMixed()), k.mul(row, 4 * widthOf(op.getMixed())));
    Value keyHead = op.getTiled() ? k.rem(head, keyHeads) : k.div(head, heads / keyHeads);
    Value queryAt = k.at(mixed, k.mul(keyHead, 4 * keyDim)), keyAt = k.at(queryAt, 4 * keys);
    Value valueAt = k.at(k.at(mixed, 8 * keys), k.mul(head, 4 * valueDim));
    Value scale =
        k.mul(inverseLength(queryAt), k.constFloat(k.f32(), 1 / std::sqrt(double(keyDim))));
    Value unit = inverseLength(keyAt);
    Value step = k.softplus(k.add(perHead(op.getDecay(), row), ofHead(op.getBias())));
    Value kept = k.splat(k.exp(k.mul(ofHead(op.getRate()), step)), piece);
    Value share = k.splat(k.sigmoid(perHead(op.getBeta(), row)), piece);

    Value column = k.at(memory, offset);
    auto place = [&](Value i) { return k.at(column, k.mul(i, 4 * valueDim)); };
    auto factor = [&](Value at, Value i, Value by) {
      return k.splat(k.mul(k.load(k.f32(), k.at(at, k.mul(i, 4)), 4), by), piece);
    };
    // What the kept memory has for this key.
    Value found = k.loop(k.constI64(0), k.constI64(keyDim), k.constI64(1), {k.zero(type)},
                         [&](Value i, ArrayRef<Value> carried) -> Values {
                           Value old = k.mul(k.load(type, place(i), 4), kept);
                           k.store(old, place(i), 4);
                           return {k.mulAdd(factor(keyAt, i, unit), old, carried[0])};
                         })[0];
    Value change = k.mul(share, k.sub(k.load(type, k.at(valueAt, offset), 4), found));
    Value out = k.loop(k.constI64(0), k.constI64(keyDim), k.constI64(1), {k.zero(type)},
                       [&](Value i, ArrayRef<Value> carried) -> Values {
                         Value next =
                             k.mulAdd(factor(keyAt, i, unit), change, k.load(type, place(i), 4));
                         k.store(next, place(i), 4);
                         return {k.mulAdd(factor(queryAt, i, scale), next, carried[0])};
                       })[0];
    Value to = k.at(frame.address(op.getInto()), k.mul(row, 4 * heads * valueDim));
    k.store(out, k.at(k.at(to, k.mul(head, 4 * valueDim)), offset), 4);
  }

  KernelFrame &frame;
  KernelBuilder &k;
  pack::DeltaRuleOp op;
  int64_t heads, keyHeads, keyDim, valueDim;
  Value head, memory;
};

} // namespace

llvm::LogicalResult emitShortConv(KernelFrame &frame, pack::ShortConvOp op) {
  ShortConv(frame, op).emit();
  return success();
}

llvm::LogicalResult emitDeltaRule(KernelFrame &frame, pack::DeltaRuleOp op) {
  DeltaRule(frame, op).emit();
  return success();
}

} // namespace izhc
