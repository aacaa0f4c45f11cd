// Ops on rows of float32: `map`, `norm`, `rope` and `append`.

#include "targets/reference/codegen/Lowering.h"

namespace izhc::reference {

using namespace mlir;

namespace {

Value rowOf(KernelFrameBase &frame, Value buffer, Value row) {
  return frame.k.at(frame.address(buffer), frame.k.mul(row, rowBytes(buffer)));
}

Value mapped(KernelBuilder &k, pack::MapOp op, Value x, Value y) {
  Value factor = k.constFloat(k.f32(), op.getFactor().convertToFloat());
  auto times = [&](Value value) { return y ? k.mul(value, y) : value; };
  switch (op.getKind()) {
  case pack::MapKind::Scale:
    return k.mul(factor, x);
  case pack::MapKind::SoftCap:
    return k.mul(factor, k.tanh(k.div(x, factor)));
  case pack::MapKind::Silu:
    return times(k.silu(x));
  case pack::MapKind::Gelu:
    return times(k.gelu(x));
  case pack::MapKind::Sigmoid:
    return times(k.sigmoid(x));
  case pack::MapKind::Add:
    return k.add(k.mul(factor, x), y);
  case pack::MapKind::Mul:
    return k.mul(x, y);
  }
  return x;
}

} // namespace

LogicalResult emitMap(KernelFrameBase &frame, pack::MapOp op) {
  KernelBuilder &k = frame.k;
  k.loop(frame.begin, frame.end, 1, [&](Value row) {
    Value lhs = rowOf(frame, op.getLhs(), row), out = rowOf(frame, op.getInto(), row);
    Value rhs = op.getRhs() ? rowOf(frame, op.getRhs(), row) : Value();
    k.loop(k.constI64(0), k.constI64(rowBytes(op.getInto()) / 4), 1, [&](Value i) {
      Value x = loadFloat(k, lhs, k.add(i, int64_t(op.getLhsFirst())));
      storeFloat(k, mapped(k, op, x, rhs ? loadFloat(k, rhs, i) : Value()), out, i);
    });
  });
  return success();
}

LogicalResult emitNorm(KernelFrameBase &frame, pack::NormOp op) {
  KernelBuilder &k = frame.k;
  int64_t over = op.getOver();
  k.loop(frame.begin, frame.end, 1, [&](Value row) {
    Value input = rowOf(frame, op.getInput(), row), out = rowOf(frame, op.getInto(), row);
    k.loop(k.constI64(0), k.constI64(rowBytes(op.getInput()) / 4), over, [&](Value first) {
      Value squares = sum(k, k.f32(), k.constI64(over), [&](Value i) {
        Value x = loadFloat(k, input, k.add(first, i));
        return k.mul(x, x);
      });
      Value mean = k.div(squares, k.constFloat(k.f32(), double(over)));
      Value root = k.sqrt(k.add(mean, k.constFloat(k.f32(), op.getEps().convertToFloat())));
      Value factor = k.div(k.constFloat(k.f32(), op.getFactor().convertToFloat()), root);
      k.loop(k.constI64(0), k.constI64(over), 1, [&](Value i) {
        Value at = k.add(first, i);
        Value x = k.mul(loadFloat(k, input, at), factor);
        if (op.getScale())
          x = k.mul(x, loadFloat(k, frame.address(op.getScale()), i));
        if (op.getResidual())
          x = k.add(loadFloat(k, rowOf(frame, op.getResidual(), row), at), x);
        storeFloat(k, x, out, at);
      });
    });
  });
  return success();
}

LogicalResult emitRope(KernelFrameBase &frame, pack::RopeOp op) {
  KernelBuilder &k = frame.k;
  int64_t dim = op.getHeadDim(), rotary = rowBytes(op.getTable()) / 4, pairs = rotary / 2;
  bool halves = op.getStyle() == pack::RopeStyle::Halves;
  k.loop(frame.begin, frame.end, 1, [&](Value row) {
    Value input = rowOf(frame, op.getInput(), row), out = rowOf(frame, op.getInto(), row);
    Value table = rowOf(frame, op.getTable(), row);
    k.loop(k.constI64(0), k.constI64(rowBytes(op.getInput()) / 4), dim, [&](Value head) {
      k.loop(k.constI64(0), k.constI64(pairs), 1, [&](Value i) {
        Value first = k.add(head, halves ? i : k.mul(i, 2));
        Value second = k.add(first, halves ? pairs : 1);
        Value a = loadFloat(k, input, first), b = loadFloat(k, input, second);
        Value cos = loadFloat(k, table, i), sin = loadFloat(k, table, k.add(i, pairs));
        storeFloat(k, k.sub(k.mul(a, cos), k.mul(b, sin)), out, first);
        storeFloat(k, k.add(k.mul(b, cos), k.mul(a, sin)), out, second);
      });
      k.loop(k.constI64(rotary), k.constI64(dim), 1, [&](Value i) {
        storeFloat(k, loadFloat(k, input, k.add(head, i)), out, k.add(head, i));
      });
    });
  });
  return success();
}

LogicalResult emitAppend(KernelFrameBase &frame, pack::AppendOp op) {
  KernelBuilder &k = frame.k;
  auto kv = cast<pack::KvType>(op.getInto().getType());
  int64_t dim = kv.getDim();
  k.loop(frame.begin, frame.end, 1, [&](Value row) {
    Value slot = loadIndex(k, frame.address(op.getSlots()), row);
    Value page = k.at(frame.address(op.getInto()),
                      k.mul(k.div(slot, kv.getPage()), kv.getPageBytes()));
    slot = k.rem(slot, kv.getPage());
    auto store = [&](Value from, Value i, Value index, int64_t offset) {
      Value half = k.floatToHalf(loadFloat(k, from, i));
      k.store(half, k.at(page, k.add(k.mul(index, 2), offset)), 2);
    };
    // Keys [heads][dim][page], values [heads][page][dim].
    k.loop(k.constI64(0), k.constI64(kv.getHeads()), 1, [&](Value head) {
      k.loop(k.constI64(0), k.constI64(dim), 1, [&](Value j) {
        Value i = k.add(k.mul(head, dim), j);
        store(rowOf(frame, op.getKeys(), row), i, k.add(k.mul(i, kv.getPage()), slot), 0);
        Value index = k.add(k.mul(k.add(k.mul(head, kv.getPage()), slot), dim), j);
        store(rowOf(frame, op.getValues(), row), i, index, kv.getValuesOffset());
      });
    });
  });
  return success();
}

} // namespace izhc::reference
