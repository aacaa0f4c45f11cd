// Ops on rows of float32: `embed`, `rope_table`, `map`, `norm`, `rope`, `join`
// and `scale_rows`.

#include "targets/cuda/codegen/Lowering.h"
#include "targets/cuda/codegen/Weights.h"

namespace izhc::cuda {

using namespace mlir;

LogicalResult emitEmbed(Block &block, pack::EmbedOp op) {
  KernelBuilder &k = block.k;
  auto weights = Weights::of(op, block, op.getWeight().getType());
  if (!weights)
    return failure();
  Value scale = k.constFloat(k.f32(), op.getScale().convertToFloat());
  Value id = loadIndex(k, block.address(op.getIds()), block.unit);
  Value tile = k.at(block.address(op.getWeight()),
                    k.mul(k.div(id, PackedLayout::kTileRows), weights->tileBytes()));
  Value row = k.rem(id, PackedLayout::kTileRows), out = block.rowOf(op.getInto(), block.unit);
  block.forThreads(weights->runs(), [&](Value run) {
    weights->decode(tile, row, run,
                    [&](Value i, Value weight) { storeFloat(k, k.mul(weight, scale), out, i); });
  });
  return success();
}

LogicalResult emitRopeTable(Block &block, pack::RopeTableOp op) {
  KernelBuilder &k = block.k;
  int64_t count = cast<MemRefType>(op.getFrequencies().getType()).getDimSize(0);
  Value number = k.load(k.i32(), k.at(block.address(op.getPositions()), k.mul(block.unit, 4)), 4);
  Value one = k.constFloat(k.f32(), 1.0);
  Value periods = k.intToFloat(k.div(number, int64_t(op.getPeriod())));
  Value growth =
      k.mul(k.constFloat(k.f32(), op.getGrowth().convertToFloat()), k.log(k.add(periods, one)));
  Value magnitude =
      k.mul(k.constFloat(k.f32(), op.getMagnitude().convertToFloat()), k.add(growth, one));
  Value out = block.rowOf(op.getInto(), block.unit);
  block.forThreads(count, [&](Value i) {
    Value angle = k.mul(k.intToFloat(number), loadFloat(k, block.address(op.getFrequencies()), i));
    Value cosine, sine;
    k.cosSin(angle, cosine, sine);
    storeFloat(k, k.mul(magnitude, cosine), out, i);
    storeFloat(k, k.mul(magnitude, sine), out, k.add(i, count));
  });
  return success();
}

static Value mapped(KernelBuilder &k, pack::MapOp op, Value x, Value y) {
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

LogicalResult emitMap(Block &block, pack::MapOp op) {
  KernelBuilder &k = block.k;
  Value lhs = block.rowOf(op.getLhs(), block.unit), out = block.rowOf(op.getInto(), block.unit);
  Value rhs = op.getRhs() ? block.rowOf(op.getRhs(), block.unit) : Value();
  block.forThreads(Block::widthOf(op.getInto()), [&](Value i) {
    Value x = loadFloat(k, lhs, k.add(i, int64_t(op.getLhsFirst())));
    Value y = rhs ? loadFloat(k, rhs, i) : Value();
    storeFloat(k, mapped(k, op, x, y), out, i);
  });
  return success();
}

// A warp for each run of values.
LogicalResult emitNorm(Block &block, pack::NormOp op) {
  KernelBuilder &k = block.k;
  int64_t over = op.getOver();
  Value input = block.rowOf(op.getInput(), block.unit), out = block.rowOf(op.getInto(), block.unit);
  Value runs = k.constI64(Block::widthOf(op.getInput()) / over);
  k.loop(block.warp, runs, block.warps(), [&](Value number) {
    Value first = k.mul(number, over);
    Value squares = k.loop(block.lane, k.constI64(over), k.constI64(kWarp), {k.zero(k.f32())},
                           [&](Value i, ArrayRef<Value> carried) {
                             Value x = loadFloat(k, input, k.add(first, i));
                             return Block::Values{k.mulAdd(x, x, carried[0])};
                           })[0];
    Value factor = normFactor(k, block.warpSum(squares), over, op.getEps().convertToFloat(),
                              op.getFactor().convertToFloat());
    block.forLanes(over, [&](Value i) {
      Value at = k.add(first, i), x = k.mul(loadFloat(k, input, at), factor);
      if (op.getScale())
        x = k.mul(x, loadFloat(k, block.address(op.getScale()), i));
      if (op.getResidual())
        x = k.add(loadFloat(k, block.rowOf(op.getResidual(), block.unit), at), x);
      storeFloat(k, x, out, at);
    });
  });
  return success();
}

LogicalResult emitRope(Block &block, pack::RopeOp op) {
  KernelBuilder &k = block.k;
  int64_t dim = op.getHeadDim(), rotary = Block::widthOf(op.getTable()), pairs = rotary / 2;
  int64_t heads = Block::widthOf(op.getInput()) / dim;
  bool halves = op.getStyle() == pack::RopeStyle::Halves;
  Value input = block.rowOf(op.getInput(), block.unit), out = block.rowOf(op.getInto(), block.unit);
  Value table = block.rowOf(op.getTable(), block.unit);
  block.forThreads(heads * pairs, [&](Value number) {
    Value i = k.rem(number, pairs), head = k.mul(k.div(number, pairs), dim);
    Value first = k.add(head, halves ? i : k.mul(i, 2));
    Value second = k.add(first, halves ? pairs : 1);
    Value a = loadFloat(k, input, first), b = loadFloat(k, input, second);
    Value cos = loadFloat(k, table, i), sin = loadFloat(k, table, k.add(i, pairs));
    storeFloat(k, k.sub(k.mul(a, cos), k.mul(b, sin)), out, first);
    storeFloat(k, k.add(k.mul(b, cos), k.mul(a, sin)), out, second);
  });
  if (int64_t rest = dim - rotary)
    block.forThreads(heads * rest, [&](Value number) {
      Value at = k.add(k.add(k.mul(k.div(number, rest), dim), rotary), k.rem(number, rest));
      storeFloat(k, loadFloat(k, input, at), out, at);
    });
  return success();
}

LogicalResult emitJoin(Block &block, pack::JoinOp op) {
  KernelBuilder &k = block.k;
  int64_t heads = op.getHeads(), width = Block::widthOf(op.getInto()) / heads;
  int64_t left = Block::widthOf(op.getLhs()) / heads, right = width - left;
  Value out = block.rowOf(op.getInto(), block.unit);
  auto copy = [&](Value from, int64_t count, int64_t offset) {
    Value row = block.rowOf(from, block.unit);
    block.forThreads(heads * count, [&](Value number) {
      Value at = k.add(k.mul(k.div(number, count), width), k.add(k.rem(number, count), offset));
      storeFloat(k, loadFloat(k, row, number), out, at);
    });
  };
  copy(op.getLhs(), left, 0);
  copy(op.getRhs(), right, left);
  return success();
}

LogicalResult emitScaleRows(Block &block, pack::ScaleRowsOp op) {
  KernelBuilder &k = block.k;
  Value factor = loadFloat(k, block.address(op.getFactors()), block.unit);
  Value input = block.rowOf(op.getInput(), block.unit), out = block.rowOf(op.getInto(), block.unit);
  block.forThreads(Block::widthOf(op.getInto()),
                   [&](Value i) { storeFloat(k, k.mul(loadFloat(k, input, i), factor), out, i); });
  return success();
}

} // namespace izhc::cuda
