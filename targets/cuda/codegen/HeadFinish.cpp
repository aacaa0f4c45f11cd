#include "targets/cuda/codegen/HeadFinish.h"

namespace izhc::cuda {

using namespace mlir;

HeadFinish::HeadFinish(Block &block, pack::MatmulHeadsOp op)
    : block(block), op(op), k(block.k), dim(op.getHeadDim()),
      cache(block, cast<pack::KvType>(op.getCache().getType())) {}

void HeadFinish::normalize(Value values, Value weight) {
  Value squares = k.loop(block.lane, k.constI64(dim), k.constI64(kWarp), {k.zero(k.f32())},
                         [&](Value i, ArrayRef<Value> carried) {
                           Value x = loadFloat(k, values, i);
                           return Block::Values{k.mulAdd(x, x, carried[0])};
                         })[0];
  Value factor =
      normFactor(k, block.warpSum(squares), dim, op.getEps().convertToFloat(), /*factor=*/1);
  block.forLanes(dim, [&](Value i) {
    Value x = k.mul(loadFloat(k, values, i), factor);
    storeFloat(k, k.mul(x, loadFloat(k, weight, i)), values, i);
  });
  block.syncWarp();
}

void HeadFinish::rotate(Value values, Value token) {
  int64_t pairs = op.getRotary() / 2;
  Value table = block.rowOf(op.getTable(), token);
  bool halves = op.getRope() == pack::RopeStyle::Halves;
  block.forLanes(pairs, [&](Value i) {
    Value first = halves ? i : k.mul(i, 2);
    Value second = k.add(first, halves ? pairs : 1);
    Value a = loadFloat(k, values, first), b = loadFloat(k, values, second);
    Value cos = loadFloat(k, table, i), sin = loadFloat(k, table, k.add(i, pairs));
    storeFloat(k, k.sub(k.mul(a, cos), k.mul(b, sin)), values, first);
    storeFloat(k, k.add(k.mul(b, cos), k.mul(a, sin)), values, second);
  });
  block.syncWarp();
}

void HeadFinish::storeQuery(Value values, Value token, Value number) {
  Value to = k.at(block.rowOf(op.getQueries(), token), k.mul(number, 4 * dim));
  block.forLanes(dim, [&](Value i) { storeFloat(k, cache.turned(values, dim, i), to, i); });
}

void HeadFinish::finish(size_t matrix, Value number, Value token, Value values) {
  if (!op.getBiases().empty()) {
    Value bias = k.at(block.address(op.getBiases()[matrix]), k.mul(number, 4 * dim));
    block.forLanes(dim, [&](Value i) {
      storeFloat(k, k.add(loadFloat(k, values, i), loadFloat(k, bias, i)), values, i);
    });
    block.syncWarp();
  }
  if (Value norm = matrix == 0 ? op.getQNorm() : matrix == 1 ? op.getKNorm() : Value())
    normalize(values, block.address(norm));
  if (matrix < 2 && op.getRope() != pack::RopeStyle::None)
    rotate(values, token);
  if (matrix == 0)
    storeQuery(values, token, number);
  else
    cache.store(matrix == 1, block.address(op.getCache()), number,
                loadIndex(k, block.address(op.getSlots()), token), values);
}

} // namespace izhc::cuda
