// `matmul_heads`: a block computes the rows of a group of heads, then a warp
// finishes each head: norm, rotation, and the place where attention reads it.

#include "targets/cuda/codegen/HeadFinish.h"
#include "targets/cuda/codegen/Lowering.h"
#include "targets/cuda/codegen/PairProducts.h"
#include "targets/cuda/codegen/RowBatch.h"
#include <numeric>

namespace izhc::cuda {

using namespace mlir;

namespace {

constexpr int64_t kTile = PackedLayout::kTileRows;
constexpr int64_t kRecords = 4;

struct HeadsEmitter {
  Block &block;
  pack::MatmulHeadsOp op;
  KernelBuilder &k;
  int64_t dim, groupRows, groupHeads;
  HeadFinish finisher;
  RowBatch batch;
  Value heads; // dim floats a warp, of the head that it finishes

  HeadsEmitter(Block &block, pack::MatmulHeadsOp op)
      : block(block), op(op), k(block.k), dim(op.getHeadDim()), groupRows(std::lcm(dim, kTile)),
        groupHeads(groupRows / dim), finisher(block, op),
        batch(block, groupRows / kTile, kRecords,
              Spans(cast<pack::ActType>(op.getAct().getType()).getWidth())),
        heads(k.at(block.shared(4 * dim * block.warps()), k.mul(block.warp, 4 * dim))) {}

  // Head `inGroup` of the group of matrix `matrix` that begins with `firstHead`.
  void finish(size_t matrix, Value firstHead, Value inGroup, Value record, Value token) {
    Value firstRow = k.mul(inGroup, dim);
    block.forLanes(
        dim, [&](Value i) { storeFloat(k, batch.product(record, k.add(firstRow, i)), heads, i); });
    block.syncWarp();
    finisher.finish(matrix, k.add(firstHead, inGroup), token, heads);
    block.syncWarp();
  }

  // Group `group` of a matrix: all tokens, a few at a time.
  void emitGroup(size_t matrix, const Weights &weights, Value group) {
    auto act = cast<pack::ActType>(op.getAct().getType());
    int64_t groupTiles = groupRows / kTile, headCount = weights.rows() / dim;
    Value firstTile = k.mul(group, groupTiles), firstHead = k.mul(group, groupHeads);
    Value tiles = k.min(k.constI64(groupTiles), k.sub(k.constI64(weights.tiles()), firstTile));
    Value present = k.min(k.constI64(groupHeads), k.sub(k.constI64(headCount), firstHead));
    Value address =
        k.at(block.address(op.getWeights()[matrix]), k.mul(firstTile, weights.tileBytes()));
    auto emitTokens = [&](Value first, int64_t count) {
      SmallVector<Value> records;
      for (int64_t i = 0; i < count; ++i) {
        Value there = k.min(k.add(first, i), k.add(block.tokens, -1));
        Value offset = k.mul(there, pack::ActLayout(act).stride);
        records.push_back(k.at(block.address(op.getAct()), offset));
      }
      batch.compute(weights, address, tiles, records, act);
      Value here = k.min(k.constI64(count), k.sub(block.tokens, first));
      k.loop(block.warp, k.mul(here, present), block.warps(), [&](Value pair) {
        Value record = k.div(pair, present);
        finish(matrix, firstHead, k.rem(pair, present), record, k.add(first, record));
      });
      batch.release();
    };
    k.ifThenElse(
        k.equal(block.tokens, k.constI64(1)), [&] { emitTokens(k.constI64(0), 1); },
        [&] {
          k.loop(k.constI64(0), block.tokens, kRecords,
                 [&](Value first) { emitTokens(first, kRecords); });
        });
  }
};

} // namespace

LogicalResult emitMatmulHeads(Block &block, pack::MatmulHeadsOp op) {
  if (isPaired(op)) {
    emitPairedHeads(block, op);
    return success();
  }
  block.prepare();
  KernelBuilder &k = block.k;
  HeadsEmitter emitter(block, op);
  auto act = cast<pack::ActType>(op.getAct().getType());
  int64_t firstGroup = 0;
  for (auto [matrix, operand] : llvm::enumerate(op.getWeights())) {
    auto weights = Weights::of(op, block, operand.getType());
    if (!weights || !weights->takes(op, act))
      return failure();
    int64_t groups = llvm::divideCeil(weights->rows(), emitter.groupRows);
    Value group = k.add(block.unit, -firstGroup);
    Value inside = k.andBits(k.lessEqual(k.constI64(0), group), k.less(group, k.constI64(groups)));
    k.ifThen(inside, [&] { emitter.emitGroup(matrix, *weights, group); });
    firstGroup += groups;
  }
  return success();
}

} // namespace izhc::cuda
