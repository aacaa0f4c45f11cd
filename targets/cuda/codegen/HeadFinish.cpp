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
  auto scale = [&](Value i, Value weight) {
    Value x = k.mul(loadFloat(k, values, i), factor);
    storeFloat(k, k.mul(x, weight), values, i);
  };
  if (norms.empty())
    block.forLanes(dim, [&](Value i) { scale(i, loadFloat(k, weight, i)); });
  for (auto [turn, norm] : llvm::enumerate(norms))
    scale(k.add(block.lane, int64_t(turn) * kWarp), norm);
  block.syncWarp();
}

void HeadFinish::rotate(Value values, Value token) {
  int64_t pairs = op.getRotary() / 2;
  Value table = block.rowOf(op.getTable(), token);
  bool halves = op.getRope() == pack::RopeStyle::Halves;
  auto turn = [&](Value i, Value cos, Value sin) {
    Value first = halves ? i : k.mul(i, 2);
    Value second = k.add(first, halves ? pairs : 1);
    Value a = loadFloat(k, values, first), b = loadFloat(k, values, second);
    storeFloat(k, k.sub(k.mul(a, cos), k.mul(b, sin)), values, first);
    storeFloat(k, k.add(k.mul(b, cos), k.mul(a, sin)), values, second);
  };
  if (cosines.empty())
    block.forLanes(pairs, [&](Value i) {
      turn(i, loadFloat(k, table, i), loadFloat(k, table, k.add(i, pairs)));
    });
  for (auto [number, pair] : llvm::enumerate(llvm::zip(cosines, sines)))
    turn(k.add(block.lane, int64_t(number) * kWarp), std::get<0>(pair), std::get<1>(pair));
  block.syncWarp();
}

void HeadFinish::fetchWeights(size_t matrix) {
  norms.clear();
  Value norm = normOf(matrix);
  if (!norm || dim % kWarp != 0)
    return;
  for (int64_t i = 0; i < dim; i += kWarp) {
    Value at = k.at(block.address(norm), k.mul(k.add(block.lane, i), 4));
    norms.push_back(k.bitcast(block.fetch(at, 1)[0], k.f32()));
  }
}

void HeadFinish::loadRow(size_t matrix) {
  cosines.clear();
  sines.clear();
  slot = {};
  if (matrix > 0)
    slot = loadIndex(k, block.address(op.getSlots()), k.constI64(0));
  int64_t pairs = op.getRotary() / 2;
  if (matrix == 2 || op.getRope() == pack::RopeStyle::None || pairs % kWarp != 0)
    return;
  Value table = block.address(op.getTable());
  for (int64_t i = 0; i < pairs; i += kWarp) {
    Value at = k.add(block.lane, i);
    cosines.push_back(loadFloat(k, table, at));
    sines.push_back(loadFloat(k, table, k.add(at, pairs)));
  }
}

void HeadFinish::storeQuery(Value values, Value token, Value number) {
  Value to = k.at(block.rowOf(op.getQueries(), token), k.mul(number, 4 * dim));
  block.forLanes(dim, [&](Value i) { storeFloat(k, cache.turned(values, dim, i), to, i); });
}

void HeadFinish::transform(size_t matrix, Value number, Value token, Value values) {
  if (!op.getBiases().empty()) {
    Value bias = k.at(block.address(op.getBiases()[matrix]), k.mul(number, 4 * dim));
    block.forLanes(dim, [&](Value i) {
      storeFloat(k, k.add(loadFloat(k, values, i), loadFloat(k, bias, i)), values, i);
    });
    block.syncWarp();
  }
  if (Value norm = normOf(matrix))
    normalize(values, block.address(norm));
  if (matrix < 2 && op.getRope() != pack::RopeStyle::None)
    rotate(values, token);
}

void HeadFinish::finish(size_t matrix, Value number, Value token, Value values) {
  transform(matrix, number, token, values);
  if (matrix == 0)
    storeQuery(values, token, number);
  else
    cache.store(matrix == 1, block.address(op.getCache()), number,
                slot ? slot : loadIndex(k, block.address(op.getSlots()), token), values);
}

} // namespace izhc::cuda
