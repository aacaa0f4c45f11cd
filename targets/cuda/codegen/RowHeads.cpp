#include "targets/cuda/codegen/RowHeads.h"
#include "targets/cuda/codegen/PairProducts.h"
#include "targets/cuda/codegen/TensorCore.h"

namespace izhc::cuda {

using namespace mlir;

RowHeads::RowHeads(Block &block, pack::MatmulHeadsOp op, int64_t queries, Value raw)
    : block(block), op(op), k(block.k), cache(block, cast<pack::KvType>(op.getCache().getType())),
      dim(op.getHeadDim()), queries(queries), raw(raw), newKey(block.shared(4 * dim)),
      newValue(block.shared(4 * dim)), newWords(block.shared(2 * dim)),
      queryFinish(*block.headsBlock, op), keyFinish(*block.headsBlock, op),
      valueFinish(*block.headsBlock, op) {}

void RowHeads::fetch() {
  queryFinish.fetchWeights(0);
  keyFinish.fetchWeights(1);
  Value at = block.headsBlock->address(op.getSlots());
  slot = k.extendS(block.fetch(at, 1)[0], k.i64());
}

void RowHeads::finishQueries(llvm::function_ref<Value(Value)> headOf,
                             llvm::function_ref<void(Value, Value)> use) {
  for (int64_t first = 0; first < queries; first += block.warps()) {
    Value number = k.add(block.warp, first);
    auto finishOne = [&] {
      Value head = headOf(number), into = k.at(raw, k.mul(number, 4 * dim));
      loadHead(queryFinish, 0, head, block.headsBlock->address(op.getQueries()), into);
      queryFinish.transform(0, head, k.constI64(0), into);
      block.syncWarp();
      use(number, into);
    };
    if (first + block.warps() <= queries)
      finishOne();
    else
      k.ifThen(k.less(number, k.constI64(queries)), finishOne);
  }
}

void RowHeads::finishNew(Value head, Value wanted) {
  kvHead = head;
  hasNew = wanted;
  Value none = k.constI64(0), keys = k.at(block.scratch, kRawHeads);
  Value values = k.at(keys, 4 * dim * cache.type.getHeads());
  k.ifThen(k.andBits(hasNew, isWarp(1)), [&] {
    loadHead(keyFinish, 1, kvHead, keys, newKey);
    keyFinish.transform(1, kvHead, none, newKey);
    block.forLanes(dim / 2, [&](Value i) {
      Value pair = k.load(k.vec(2, k.f32()), k.at(newKey, k.mul(i, 8)), 8);
      Value word = packHalves(k, k.extract(pair, 0), k.extract(pair, 1));
      k.store(word, k.at(newWords, k.mul(i, 4)), 4);
    });
  });
  k.ifThen(k.andBits(hasNew, isWarp(2)), [&] {
    loadHead(valueFinish, 2, kvHead, values, newValue);
    valueFinish.transform(2, kvHead, none, newValue);
  });
}

Value RowHeads::keyWord(Value i) { return k.load(k.i32(), k.at(newWords, k.mul(i, 4)), 4); }

Value RowHeads::valueHalf(Value i) {
  return k.extendU(k.floatToHalf(loadFloat(k, newValue, i)), k.i32());
}

void RowHeads::storeNew() {
  auto store = [&](size_t matrix, Value values) {
    k.ifThen(k.andBits(hasNew, isWarp(int64_t(matrix))), [&] {
      cache.store(/*isKey=*/matrix == 1, block.headsBlock->address(op.getCache()), kvHead, slot,
                  values);
    });
  };
  store(1, newKey);
  store(2, newValue);
}

Value RowHeads::isWarp(int64_t matrix) {
  return k.equal(block.warp, k.constI64((queries + matrix - 1) % block.warps()));
}

// Head `number` of those at `from`, to shared memory, and what finishing it needs: all is
// on its way before any of it is used.
void RowHeads::loadHead(HeadFinish &finisher, size_t matrix, Value number, Value from, Value into) {
  Value row = k.at(from, k.mul(number, 4 * dim));
  Block::Values values;
  for (int64_t i = 0; i < dim; i += kWarp)
    values.push_back(loadFloat(k, row, k.min(k.add(block.lane, i), k.constI64(dim - 1))));
  finisher.loadRow(matrix);
  for (auto [turn, value] : llvm::enumerate(values)) {
    Value i = k.add(block.lane, int64_t(turn) * kWarp);
    k.ifThen(k.less(i, k.constI64(dim)), [&] { storeFloat(k, value, into, i); });
  }
  block.syncWarp();
}

} // namespace izhc::cuda
