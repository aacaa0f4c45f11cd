#include "targets/cuda/codegen/FloatRow.h"
#include "targets/cuda/codegen/Epilogue.h"
#include "targets/cuda/codegen/Records.h"
#include "targets/cuda/codegen/Weights.h"

namespace izhc::cuda {

using namespace mlir;

namespace {

constexpr int64_t kTile = PackedLayout::kTileRows;
// Of a large GPU, which has all blocks at a time: each of them makes its row.
constexpr int64_t kMostTiles = 2 * 132;
// Warps that make a row of activations together, at least.
constexpr int64_t kLeastWarps = 4;
// Columns whose weights a lane has in registers, and those of a turn beyond.
constexpr int64_t kAhead = 128, kTurn = 16;

pack::WeightType typeOf(pack::MatmulOp op) {
  return cast<pack::WeightType>(op.getWeights()[0].getType());
}
int64_t tilesOf(pack::MatmulOp op) { return llvm::divideCeil(typeOf(op).getRows(), kTile); }
pack::ActType actOf(pack::MatmulOp op) { return cast<pack::ActType>(op.getAct().getType()); }

struct FloatRow {
  Block &block;
  // A handle: its getters change nothing.
  mutable pack::MatmulOp op;
  KernelBuilder &k;
  Weights weights;
  Spans spans;
  Value tile, row, span, first;

  FloatRow(Block &block, pack::MatmulOp op, Weights weights)
      : block(block), op(op), k(block.k), weights(weights), spans(weights.spans()) {
    Value number = k.min(block.unit, k.constI64(tilesOf(op) - 1));
    tile = k.at(block.address(op.getWeights()[0]), k.mul(number, weights.tileBytes()));
    row = k.rem(block.lane, kTile);
    span = k.add(k.mul(block.warp, 2), k.div(block.lane, kTile));
    first = k.mul(k.min(span, k.constI64(spans.count() - 1)), spans.columnsEach());
  }

  int64_t columns() const { return weights.weightType().getCols(); }
  bool isEven() const { return columns() % spans.columnsEach() == 0; }
  Value clamped(Value column) const {
    return isEven() ? column : k.min(column, k.constI64(columns() - 1));
  }

  // Bits of the weights of `count` columns from number `start` of the span on.
  Block::Values fetch(Value start, int64_t count) const {
    Block::Values bits;
    for (int64_t i = 0; i < count; ++i)
      bits.push_back(weights.fetchFloat(tile, row, clamped(k.add(k.add(first, start), i))));
    return bits;
  }

  // `sum` and the terms of these columns.
  Value add(Value sum, Value start, ArrayRef<Value> bits) const {
    Value record = block.address(op.getAct()), column = k.add(first, start), four;
    for (auto [i, word] : llvm::enumerate(bits)) {
      Value at = k.add(column, int64_t(i)), act;
      if (isEven()) {
        if (i % 4 == 0)
          four = k.load(k.vec(4, k.f32()), k.at(record, k.mul(at, 4)), 16);
        act = k.extract(four, i % 4);
      } else {
        act = loadFloat(k, record, clamped(at));
      }
      Value next = k.mulAdd(weights.floatIn(word, row), act, sum);
      sum = isEven() ? next : k.select(k.less(at, k.constI64(columns())), next, sum);
    }
    return sum;
  }

  // The products of the tile's rows by spans go to `sums`.
  void multiply(ArrayRef<Value> ahead, Value sums) const {
    int64_t each = spans.columnsEach(), begun = ahead.size();
    Value sum = add(k.zero(k.f32()), k.constI64(0), ahead);
    if (begun < each)
      sum = k.loop(k.constI64(begun), k.constI64(each), k.constI64(kTurn), {sum},
                   [&](Value start, ArrayRef<Value> carried) {
                     return Block::Values{add(carried[0], start, fetch(start, kTurn))};
                   })[0];
    k.ifThen(k.less(span, k.constI64(spans.count())),
             [&] { storeFloat(k, sum, sums, k.add(k.mul(span, kTile), row)); });
  }

  void store(Value sums) const {
    block.forThreads(kTile, [&](Value i) {
      Value y, out = k.add(k.mul(block.unit, kTile), i);
      k.ifThen(k.less(out, k.constI64(weights.rows())), [&] {
        for (int64_t number = 0; number < spans.count(); ++number) {
          Value one = loadFloat(k, sums, k.add(i, number * kTile));
          y = y ? k.add(y, one) : one;
        }
        if (!op.getBiases().empty())
          y = k.add(y, loadFloat(k, block.address(op.getBiases()[0]), out));
        Value place = k.at(block.rowOf(op.getInto(), k.constI64(0)), k.mul(out, 4));
        k.store(matmulResult(k, op, y, {}, place), place, 4);
      });
    });
  }

  void leaveRecord() const {
    Value record = k.at(block.rowOf(op.getInto(), k.constI64(0)), block.recordOffset);
    RecordWriter(block, block.recordType).write(block.address(op.getAct()), record);
  }

  void emit() const {
    Value sums = block.shared(4 * kTile * spans.count());
    auto ahead = fetch(k.constI64(0), std::min(spans.columnsEach(), kAhead));
    block.prepare();
    auto product = [&] {
      multiply(ahead, sums);
      block.barrier();
      store(sums);
    };
    if (!block.recordType)
      return product();
    k.ifThenElse(k.less(block.unit, k.constI64(tilesOf(op))), product, [&] { leaveRecord(); });
  }
};

} // namespace

namespace float_row {

OneRowShape shape(pack::MatmulOp op) {
  if (op.getWeights().size() != 1 || !Weights::hasFloats(typeOf(op)) ||
      actOf(op).getKind() != pack::ActKind::F32 || tilesOf(op) > kMostTiles)
    return {};
  int64_t warps = llvm::divideCeil(Spans(typeOf(op).getCols()).count(), 2);
  return {tilesOf(op), kWarp * std::max(warps, kLeastWarps), 0, 0};
}

LogicalResult emit(Block &block, pack::MatmulOp op) {
  auto weights = Weights::of(op, block, op.getWeights()[0].getType());
  if (!weights)
    return failure();
  FloatRow(block, op, *weights).emit();
  return success();
}

} // namespace float_row

} // namespace izhc::cuda
