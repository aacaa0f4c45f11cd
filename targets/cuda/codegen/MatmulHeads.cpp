// `matmul_heads`: a block computes the rows of a group of heads, then a warp
// finishes each head: norm, rotation, and the place where attention reads it.

#include "targets/cuda/codegen/Cache.h"
#include "targets/cuda/codegen/Lowering.h"
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
  Cache cache;
  RowBatch batch;
  Value heads; // dim floats a warp, of the head that it finishes

  HeadsEmitter(Block &block, pack::MatmulHeadsOp op)
      : block(block), op(op), k(block.k), dim(op.getHeadDim()), groupRows(std::lcm(dim, kTile)),
        groupHeads(groupRows / dim), cache(block, cast<pack::KvType>(op.getCache().getType())),
        batch(block, groupRows / kTile, kRecords,
              Spans(cast<pack::ActType>(op.getAct().getType()).getWidth())),
        heads(k.at(block.shared(4 * dim * block.warps()), k.mul(block.warp, 4 * dim))) {}

  void normalize(Value weight) {
    Value squares = k.loop(block.lane, k.constI64(dim), k.constI64(kWarp), {k.zero(k.f32())},
                           [&](Value i, ArrayRef<Value> carried) {
                             Value x = loadFloat(k, heads, i);
                             return Block::Values{k.mulAdd(x, x, carried[0])};
                           })[0];
    Value factor =
        normFactor(k, block.warpSum(squares), dim, op.getEps().convertToFloat(), /*factor=*/1);
    block.forLanes(dim, [&](Value i) {
      Value x = k.mul(loadFloat(k, heads, i), factor);
      storeFloat(k, k.mul(x, loadFloat(k, weight, i)), heads, i);
    });
    block.syncWarp();
  }

  void rotate(Value token) {
    int64_t pairs = op.getRotary() / 2;
    Value table = block.rowOf(op.getTable(), token);
    bool halves = op.getRope() == pack::RopeStyle::Halves;
    block.forLanes(pairs, [&](Value i) {
      Value first = halves ? i : k.mul(i, 2);
      Value second = k.add(first, halves ? pairs : 1);
      Value a = loadFloat(k, heads, first), b = loadFloat(k, heads, second);
      Value cos = loadFloat(k, table, i), sin = loadFloat(k, table, k.add(i, pairs));
      storeFloat(k, k.sub(k.mul(a, cos), k.mul(b, sin)), heads, first);
      storeFloat(k, k.add(k.mul(b, cos), k.mul(a, sin)), heads, second);
    });
    block.syncWarp();
  }

  void storeQuery(Value token, Value number) {
    Value to = k.at(block.rowOf(op.getQueries(), token), k.mul(number, 4 * dim));
    block.forLanes(dim, [&](Value i) { storeFloat(k, cache.turned(heads, dim, i), to, i); });
  }

  // Head `inGroup` of the group of matrix `matrix` that begins with `firstHead`.
  void finish(size_t matrix, Value firstHead, Value inGroup, Value record, Value token) {
    Value number = k.add(firstHead, inGroup), firstRow = k.mul(inGroup, dim);
    Value bias = op.getBiases().empty() ? Value() : block.address(op.getBiases()[matrix]);
    block.forLanes(dim, [&](Value i) {
      Value y = batch.product(record, k.add(firstRow, i));
      if (bias)
        y = k.add(y, loadFloat(k, bias, k.add(k.mul(number, dim), i)));
      storeFloat(k, y, heads, i);
    });
    block.syncWarp();
    if (Value norm = matrix == 0 ? op.getQNorm() : matrix == 1 ? op.getKNorm() : Value())
      normalize(block.address(norm));
    if (matrix < 2 && op.getRope() != pack::RopeStyle::None)
      rotate(token);
    if (matrix == 0)
      storeQuery(token, number);
    else
      cache.store(matrix == 1, block.address(op.getCache()), number,
                  loadIndex(k, block.address(op.getSlots()), token), heads);
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
