// Ops on rows of float32: `map`, `norm`, `rope` and `append`.

#include "targets/reference/codegen/KvCells.h"
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

LogicalResult emitHadamard(KernelFrameBase &frame, pack::HadamardOp op) {
  KernelBuilder &k = frame.k;
  int64_t dim = op.getHeadDim(), width = rowBytes(op.getInput()) / 4;
  k.loop(frame.begin, frame.end, 1, [&](Value row) {
    Value input = rowOf(frame, op.getInput(), row), out = rowOf(frame, op.getInto(), row);
    k.loop(k.constI64(0), k.constI64(width), 1,
           [&](Value i) { storeFloat(k, loadFloat(k, input, i), out, i); });
    k.loop(k.constI64(0), k.constI64(width), dim,
           [&](Value head) { multiplyHadamard(k, k.at(out, k.mul(head, 4)), dim); });
  });
  return success();
}

LogicalResult emitAppend(KernelFrameBase &frame, pack::AppendOp op) {
  KernelBuilder &k = frame.k;
  auto kv = cast<pack::KvType>(op.getInto().getType());
  KvCells cells(k, kv);
  Value scratch = k.stack(4 * std::max(kv.getDim(), kv.getValueDim()));
  auto copy = [&](Value row, Value head, int64_t size) {
    k.loop(k.constI64(0), k.constI64(size), 1, [&](Value i) {
      storeFloat(k, loadFloat(k, row, k.add(k.mul(head, size), i)), scratch, i);
    });
    return scratch;
  };
  k.loop(frame.begin, frame.end, 1, [&](Value row) {
    Value slot = loadIndex(k, frame.address(op.getSlots()), row);
    Value page =
        k.at(frame.address(op.getInto()), k.mul(k.div(slot, kv.getPage()), cells.layout.pageBytes));
    Value token = k.rem(slot, kv.getPage());
    Value keys = rowOf(frame, op.getKeys(), row), values = rowOf(frame, op.getValues(), row);
    k.loop(k.constI64(0), k.constI64(kv.getHeads()), 1, [&](Value head) {
      cells.storeKey(page, head, token, copy(keys, head, kv.getDim()));
      cells.storeValue(page, head, token, copy(values, head, kv.getValueDim()));
    });
  });
  return success();
}

} // namespace izhc::reference
