// Tiles are numbered so that a tile's expert is found without a sum over those
// before: the first tile of the i-th expert with pairs is number
// first pair / records + i. Some numbers have no tile then.

#include "targets/cuda/codegen/PairTiles.h"

namespace izhc::cuda {

using namespace mlir;

Value PairTiles::entry(Value number) const {
  return k.at(k.at(table, layout.kExperts), k.mul(number, layout.kExpertBytes));
}

Value PairTiles::field(Value address, int64_t offset) const {
  return k.extendS(k.load(k.i32(), k.at(address, offset), 4), k.i64());
}

void PairTiles::forEach(Value first, Value step, llvm::function_ref<void(const Tile &)> body) {
  Value active = field(table, 0), pairs = k.mul(block.tokens, layout.type.getChosen());
  Value end = k.add(k.div(pairs, records), active);
  auto firstTile = [&](Value at, Value number) {
    return k.add(k.div(field(at, layout.kFirst), records), number);
  };
  k.loop(first, end, step, {}, [&](Value tile, ArrayRef<Value>) {
    k.ifThen(k.equal(block.thread, k.constI64(0)),
             [&] { k.store(k.constInt(k.i32(), -1), found, 4); });
    block.barrier();
    block.forThreads(active, [&](Value number) {
      Value at = entry(number), before = firstTile(at, number);
      Value count = k.div(k.add(field(at, layout.kCount), records - 1), records);
      Value isHere = k.andBits(k.lessEqual(before, tile), k.less(tile, k.add(before, count)));
      k.ifThen(isHere, [&] { k.store(k.truncate(number, k.i32()), found, 4); });
    });
    block.barrier();
    Value number = field(found, 0);
    k.ifThen(k.lessEqual(k.constI64(0), number), [&] {
      Value at = entry(number), firstPair = field(at, layout.kFirst);
      Value inExpert = k.mul(k.sub(tile, firstTile(at, number)), records);
      body({field(at, 0), k.add(firstPair, inExpert), k.add(firstPair, field(at, layout.kCount))});
    });
    block.barrier();
    return Block::Values();
  });
}

} // namespace izhc::cuda
