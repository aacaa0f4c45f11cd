// pack.map, pack.norm, pack.rope and pack.append: rows of float32, one unit a
// row. What the matrix products and attention could not take in.

#include "compiler/target/vector/Hadamard.h"
#include "compiler/target/vector/KvWriter.h"
#include "compiler/target/vector/Pieces.h"
#include "compiler/target/vector/VectorLowering.h"
#include <numeric>

namespace izhc {

using namespace mlir;

namespace {

int64_t widthOf(Value buffer) { return cast<MemRefType>(buffer.getType()).getDimSize(1); }

// The address of row `row` of a buffer of rows.
Value rowOf(KernelFrame &frame, Value buffer, Value row) {
  return frame.k.at(frame.address(buffer), frame.k.mul(row, 4 * widthOf(buffer)));
}

Value mapped(KernelBuilder &k, pack::MapOp op, Value x, Value y) {
  double factor = op.getFactor().convertToDouble();
  auto number = [&](double value) { return k.constFloat(x.getType(), value); };
  auto scaled = [&] { return factor == 1.0 ? x : k.mul(x, number(factor)); };
  auto times = [&](Value value) { return y ? k.mul(value, y) : value; };
  switch (op.getKind()) {
  case pack::MapKind::Scale:
    return scaled();
  case pack::MapKind::SoftCap:
    return k.mul(number(factor), k.tanh(k.mul(x, number(1.0 / factor))));
  case pack::MapKind::Silu:
    return times(k.silu(x));
  case pack::MapKind::Gelu:
    return times(k.gelu(x));
  case pack::MapKind::Sigmoid:
    return times(k.sigmoid(x));
  case pack::MapKind::Add:
    return k.add(scaled(), y);
  case pack::MapKind::Mul:
    return k.mul(x, y);
  }
  return x;
}

// 1 / sqrt(mean of squares + eps) of `count` values at `run`.
Value normFactor(KernelFrame &frame, Value run, int64_t count, double eps) {
  KernelBuilder &k = frame.k;
  int64_t lanes = frame.machine.lanes, whole = count / lanes * lanes;
  auto square = [&](Value at, int64_t piece, Value sum) {
    Value x = k.load(k.vec(piece, k.f32()), at, 4);
    return k.mulAdd(x, x, sum);
  };
  Value total = k.zero(k.f32());
  if (whole)
    total = k.sumLanes(k.loop(k.constI64(0), k.constI64(4 * whole), k.constI64(4 * lanes),
                              {k.zero(k.vec(lanes, k.f32()))},
                              [&](Value offset, ArrayRef<Value> carried) -> KernelBuilder::Values {
                                return {square(k.at(run, offset), lanes, carried[0])};
                              })[0]);
  for (int64_t piece : tailPieces(count - whole, lanes)) {
    Value sum = square(k.at(run, 4 * whole), piece, k.zero(k.vec(piece, k.f32())));
    total = k.add(total, piece ? k.sumLanes(sum) : sum);
    whole += pieceValues(piece);
  }
  Value mean = k.div(total, k.constFloat(k.f32(), count));
  return k.div(k.constFloat(k.f32(), 1.0), k.sqrt(k.add(mean, k.constFloat(k.f32(), eps))));
}

// Turns the first values of the head at `from` and copies the others.
void rotateHead(KernelFrame &frame, pack::RopeOp op, Value cosines, Value from, Value to) {
  KernelBuilder &k = frame.k;
  int64_t rotary = widthOf(op.getTable()), half = rotary / 2;
  Value sines = k.at(cosines, 4 * half);
  bool halves = op.getStyle() == pack::RopeStyle::Halves;
  auto turn = [&](Value a, Value b, Value offset, int64_t piece, Value &first, Value &second) {
    Type type = k.vec(piece, k.f32());
    Value c = k.load(type, k.at(cosines, offset), 4), s = k.load(type, k.at(sines, offset), 4);
    first = k.sub(k.mul(a, c), k.mul(b, s));
    second = k.add(k.mul(b, c), k.mul(a, s));
  };
  // Neighbours are turned one pair at a time: few models have them here.
  forEachPiece(k, half, halves ? frame.machine.lanes : 1, [&](Value offset, int64_t piece) {
    piece = halves ? piece : 0;
    Type type = k.vec(piece, k.f32());
    Value place = halves ? offset : k.mul(offset, 2);
    int64_t apart = halves ? 4 * half : 4;
    Value first, second;
    turn(k.load(type, k.at(from, place), 4), k.load(type, k.at(k.at(from, place), apart), 4),
         offset, piece, first, second);
    k.store(first, k.at(to, place), 4);
    k.store(second, k.at(k.at(to, place), apart), 4);
  });
  Value restFrom = k.at(from, 4 * rotary), restTo = k.at(to, 4 * rotary);
  forEachPiece(k, int64_t(op.getHeadDim()) - rotary, frame.machine.lanes,
               [&](Value offset, int64_t piece) {
                 Value x = k.load(k.vec(piece, k.f32()), k.at(restFrom, offset), 4);
                 k.store(x, k.at(restTo, offset), 4);
               });
}

} // namespace

llvm::LogicalResult emitMap(KernelFrame &frame, pack::MapOp op) {
  KernelBuilder &k = frame.k;
  k.loop(frame.begin, frame.end, 1, [&](Value row) {
    Value lhs = k.at(rowOf(frame, op.getLhs(), row), 4 * int64_t(op.getLhsFirst()));
    Value rhs = op.getRhs() ? rowOf(frame, op.getRhs(), row) : Value();
    Value out = rowOf(frame, op.getInto(), row);
    forEachPiece(k, widthOf(op.getInto()), frame.machine.lanes, [&](Value offset, int64_t piece) {
      Type type = k.vec(piece, k.f32());
      Value x = k.load(type, k.at(lhs, offset), 4);
      Value y = rhs ? k.load(type, k.at(rhs, offset), 4) : Value();
      k.store(mapped(k, op, x, y), k.at(out, offset), 4);
    });
  });
  return success();
}

llvm::LogicalResult emitNorm(KernelFrame &frame, pack::NormOp op) {
  KernelBuilder &k = frame.k;
  int64_t over = op.getOver();
  double factor = op.getFactor().convertToDouble();
  k.loop(frame.begin, frame.end, 1, [&](Value row) {
    Value input = rowOf(frame, op.getInput(), row), out = rowOf(frame, op.getInto(), row);
    Value residual = op.getResidual() ? rowOf(frame, op.getResidual(), row) : Value();
    k.loop(k.constI64(0), k.constI64(4 * widthOf(op.getInput())), 4 * over, [&](Value start) {
      Value run = k.at(input, start);
      Value norm = normFactor(frame, run, over, op.getEps().convertToDouble());
      if (factor != 1.0)
        norm = k.mul(norm, k.constFloat(k.f32(), factor));
      forEachPiece(k, over, frame.machine.lanes, [&](Value offset, int64_t piece) {
        Type type = k.vec(piece, k.f32());
        Value x = k.mul(k.load(type, k.at(run, offset), 4), k.splat(norm, piece));
        if (op.getScale())
          x = k.mul(x, k.load(type, k.at(frame.address(op.getScale()), offset), 4));
        if (residual)
          x = k.add(k.load(type, k.at(k.at(residual, start), offset), 4), x);
        k.store(x, k.at(k.at(out, start), offset), 4);
      });
    });
  });
  return success();
}

llvm::LogicalResult emitRope(KernelFrame &frame, pack::RopeOp op) {
  KernelBuilder &k = frame.k;
  int64_t dim = op.getHeadDim();
  k.loop(frame.begin, frame.end, 1, [&](Value row) {
    Value from = rowOf(frame, op.getInput(), row), to = rowOf(frame, op.getInto(), row);
    Value table = rowOf(frame, op.getTable(), row);
    k.loop(k.constI64(0), k.constI64(4 * widthOf(op.getInput())), 4 * dim,
           [&](Value head) { rotateHead(frame, op, table, k.at(from, head), k.at(to, head)); });
  });
  return success();
}

llvm::LogicalResult emitHadamard(KernelFrame &frame, pack::HadamardOp op) {
  KernelBuilder &k = frame.k;
  int64_t dim = op.getHeadDim(), width = widthOf(op.getInput());
  k.loop(frame.begin, frame.end, 1, [&](Value row) {
    Value from = rowOf(frame, op.getInput(), row), to = rowOf(frame, op.getInto(), row);
    forEachPiece(k, width, frame.machine.lanes, [&](Value offset, int64_t piece) {
      k.store(k.load(k.vec(piece, k.f32()), k.at(from, offset), 4), k.at(to, offset), 4);
    });
    k.loop(k.constI64(0), k.constI64(4 * width), 4 * dim,
           [&](Value head) { emitHadamard(k, k.at(to, head), dim, frame.machine.lanes); });
  });
  return success();
}

llvm::LogicalResult emitAppend(KernelFrame &frame, pack::AppendOp op) {
  KernelBuilder &k = frame.k;
  auto kv = cast<pack::KvType>(op.getInto().getType());
  KvWriter writer(k, kv, frame.machine.lanes);
  Value cache = frame.address(op.getInto());
  // The writer may spoil what it reads.
  Value scratch = k.stack(4 * std::max(kv.getDim(), kv.getValueDim()));
  auto copy = [&](Value row, Value head, int64_t size) {
    Value from = k.at(row, k.mul(head, 4 * size));
    forEachPiece(k, size, frame.machine.lanes, [&](Value offset, int64_t piece) {
      k.store(k.load(k.vec(piece, k.f32()), k.at(from, offset), 4), k.at(scratch, offset), 4);
    });
    return scratch;
  };
  k.loop(frame.begin, frame.end, 1, [&](Value row) {
    Value slot = k.load(k.i32(), k.at(frame.address(op.getSlots()), k.mul(row, 4)), 4);
    slot = k.extendU(slot, k.i64());
    Value keys = rowOf(frame, op.getKeys(), row), values = rowOf(frame, op.getValues(), row);
    k.loop(k.constI64(0), k.constI64(kv.getHeads()), 1, [&](Value head) {
      writer.storeKey(cache, slot, head, copy(keys, head, kv.getDim()));
      writer.storeValue(cache, slot, head, copy(values, head, kv.getValueDim()));
    });
  });
  return success();
}

} // namespace izhc
