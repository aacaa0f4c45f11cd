#include "targets/cuda/codegen/ExpertRow.h"
#include "dialects/pack/RoutesLayout.h"
#include "targets/cuda/codegen/Epilogue.h"
#include "targets/cuda/codegen/PairBatch.h"

namespace izhc::cuda {

using namespace mlir;

namespace {

constexpr int64_t kTile = PackedLayout::kTileRows;
// Blocks of so many threads are small enough for a GPU to hold all of a step's at a
// time: weights can't be on their way before their expert is known.
constexpr int64_t kMostWarps = 8, kTogether = 3;
// Of Block::scratch: counters, then products.
constexpr int64_t kCounterBytes = 4096;

pack::WeightType typeOf(Value operand) { return cast<pack::WeightType>(operand.getType()); }
PackedLayout layoutOf(pack::WeightType type) {
  return PackedLayout(*findFormat(type.getFormat().getValue()));
}
int64_t tilesOf(pack::WeightType type) { return llvm::divideCeil(type.getRows(), kTile); }

int64_t threadsFor(pack::WeightType type) {
  return kWarp * std::clamp<int64_t>(Spans(type.getCols()).count(), 1, kMostWarps);
}

// Units of one expert.
int64_t unitsEach(pack::ExpertGateOp op) { return tilesOf(typeOf(op.getWeights()[0])); }
int64_t unitsEach(pack::ExpertSumOp op) {
  return llvm::divideCeil(tilesOf(typeOf(op.getWeight())), 2);
}

template <typename Op> pack::RoutesLayout routesOf(Op op) {
  return pack::RoutesLayout(cast<pack::RoutesType>(op.getRoutes().getType()));
}

// The unit's expert: of those that the row has chosen number `rank`, in ascending order.
template <typename Op> struct Chosen {
  Block &block;
  KernelBuilder &k;
  Op op;
  pack::RoutesLayout layout;
  pack::WeightType type;
  Value rank, inExpert, expert, weight;

  Chosen(Block &block, Op op, pack::WeightType type)
      : block(block), k(block.k), op(op), layout(routesOf(op)), type(type),
        rank(k.div(block.unit, unitsEach(op))), inExpert(k.rem(block.unit, unitsEach(op))) {}

  // Of equal experts, which only numbers that are none can bring about, the one that was
  // chosen first comes first.
  void find() {
    int64_t count = layout.type.getChosen();
    Value found = block.shared(8), choices = k.at(block.address(op.getRoutes()), layout.pairs());
    auto entry = [&](Value i) { return k.at(choices, k.mul(i, layout.kPairBytes)); };
    auto numberOf = [&](Value i) { return k.load(k.i32(), k.at(entry(i), layout.kChoice), 4); };
    block.forThreads(count, [&](Value i) {
      Value mine = numberOf(i), before = k.constI64(0);
      for (int64_t j = 0; j < count; ++j) {
        Value other = numberOf(k.constI64(j));
        Value isFirst = k.andBits(k.equal(other, mine), k.less(k.constI64(j), i));
        Value isBefore = k.orBits(k.less(other, mine), isFirst);
        before = k.add(before, k.select(isBefore, k.constI64(1), k.constI64(0)));
      }
      k.ifThen(k.equal(before, rank), [&] {
        k.store(mine, found, 4);
        k.store(k.load(k.f32(), k.at(entry(i), layout.kChoiceWeight), 4), k.at(found, 4), 4);
      });
    });
    block.barrier();
    expert = k.extendS(k.load(k.i32(), found, 4), k.i64());
    weight = k.load(k.f32(), k.at(found, 4), 4);
  }

  Value tileAt(Value stack, Value tile) {
    PackedLayout packed = layoutOf(type);
    Value matrix = k.mul(expert, packed.matrixBytes(type.getRows(), type.getCols()));
    return k.at(k.at(block.address(stack), matrix), k.mul(tile, packed.tileBytes(type.getCols())));
  }

  // The record of the expert's pair.
  Value record() {
    auto act = cast<pack::ActType>(op.getAct().getType());
    if (block.sharesRecord)
      return block.address(op.getAct());
    return k.at(block.address(op.getAct()), k.mul(rank, pack::ActLayout(act).stride));
  }

  Value biased(Value y, Value biases, Value row) {
    return k.add(y, loadFloat(k, block.address(biases), k.add(k.mul(expert, type.getRows()), row)));
  }

  // Calls Block::prepare.
  PairBatch compute(PairBatch::TileAt tileAt, Value count) {
    Value memory =
        block.shared(PairBatch::sharedBytes(block, 2, /*oneRecord=*/true, type.getCols()));
    PairBatch batch(block, 2, /*oneRecord=*/true, type, cast<pack::ActType>(op.getAct().getType()),
                    memory, /*fewRegisters=*/false);
    if (block.chooseEarly)
      block.chooseEarly();
    else
      block.prepare();
    find();
    Block::Values words = batch.fetch(tileAt, count);
    if (block.chooseEarly)
      block.prepare();
    if (block.makeRecord)
      block.makeRecord(rank);
    batch.compute(tileAt, count, [&](Value) { return record(); }, words);
    block.barrier();
    return batch;
  }
};

template <typename Op> OneRowShape shapeOf(Op op, pack::WeightType type) {
  auto act = cast<pack::ActType>(op.getAct().getType());
  if (!PairDot::supports(type, act))
    return {};
  return {unitsEach(op) * int64_t(routesOf(op).type.getChosen()), threadsFor(type), 0, kTogether};
}

} // namespace

namespace expert_row {

OneRowShape shape(pack::ExpertGateOp op) {
  pack::WeightType type = typeOf(op.getWeights()[0]);
  return typeOf(op.getWeights()[1]) == type ? shapeOf(op, type) : OneRowShape();
}

OneRowShape shape(pack::ExpertSumOp op) {
  OneRowShape shape = shapeOf(op, typeOf(op.getWeight()));
  return 4 * unitsEach(op) <= kCounterBytes ? shape : OneRowShape();
}

int64_t scratchBytes(pack::ExpertSumOp op) {
  return kCounterBytes +
         4 * int64_t(routesOf(op).type.getChosen()) * typeOf(op.getWeight()).getRows();
}

void emit(Block &block, pack::ExpertGateOp op) {
  KernelBuilder &k = block.k;
  Chosen<pack::ExpertGateOp> chosen(block, op, typeOf(op.getWeights()[0]));
  auto tileAt = [&](Value i) {
    Value gate = chosen.tileAt(op.getWeights()[0], chosen.inExpert);
    Value up = chosen.tileAt(op.getWeights()[1], chosen.inExpert);
    return k.select(k.equal(i, k.constI64(0)), gate, up);
  };
  PairBatch batch = chosen.compute(tileAt, k.constI64(2));
  block.forThreads(kTile, [&](Value i) {
    Value row = k.add(k.mul(chosen.inExpert, kTile), i), record = k.constI64(0);
    k.ifThen(k.less(row, k.constI64(chosen.type.getRows())), [&] {
      Value gate = batch.product(record, i), up = batch.product(record, k.add(i, kTile));
      if (!op.getBiases().empty()) {
        gate = chosen.biased(gate, op.getBiases()[0], row);
        up = chosen.biased(up, op.getBiases()[1], row);
      }
      storeFloat(k, gatedResult(k, op, gate, up), block.rowOf(op.getInto(), chosen.rank), row);
    });
  });
}

void emit(Block &block, pack::ExpertSumOp op) {
  KernelBuilder &k = block.k;
  Chosen<pack::ExpertSumOp> chosen(block, op, typeOf(op.getWeight()));
  int64_t rows = chosen.type.getRows(), experts = chosen.layout.type.getChosen();
  Value arrived = block.shared(4), first = k.mul(chosen.inExpert, 2);
  Value count = k.min(k.sub(k.constI64(tilesOf(chosen.type)), first), k.constI64(2));
  PairBatch batch = chosen.compute(
      [&](Value i) { return chosen.tileAt(op.getWeight(), k.add(first, i)); }, count);
  Value scale = k.constFloat(k.f32(), op.getScale().convertToDouble());
  Value products = k.at(block.scratch, kCounterBytes);
  auto forRows = [&](llvm::function_ref<void(Value inPair, Value row)> body) {
    block.forThreads(2 * kTile, [&](Value i) {
      Value row = k.add(k.mul(first, kTile), i);
      k.ifThen(k.less(row, k.constI64(rows)), [&] { body(i, row); });
    });
  };
  forRows([&](Value inPair, Value row) {
    Value y = batch.product(k.constI64(0), inPair);
    if (op.getBias())
      y = chosen.biased(y, op.getBias(), row);
    storeFloat(k, k.mul(y, k.mul(chosen.weight, scale)), products,
               k.add(k.mul(chosen.rank, rows), row));
  });
  Value counter = k.at(block.scratch, k.mul(chosen.inExpert, 4));
  Value isFirst = k.equal(block.thread, k.constI64(0));
  block.barrier();
  k.ifThen(isFirst, [&] { k.store(block.countUp(counter), arrived, 4); });
  block.barrier();
  Value before = k.extendU(k.load(k.i32(), arrived, 4), k.i64());
  k.ifThen(k.equal(before, k.constI64(experts - 1)), [&] {
    k.ifThen(isFirst, [&] { k.store(k.zero(k.i32()), counter, 4); });
    forRows([&](Value, Value row) {
      Block::Values all;
      for (int64_t rank = 0; rank < experts; ++rank) {
        Value at = k.at(products, k.mul(k.add(row, rank * rows), 4));
        all.push_back(k.bitcast(block.loadCoherent(at), k.f32()));
      }
      Value out = block.rowOf(op.getInto(), k.constI64(0));
      bool adds = op.getEpilogue() == pack::Epilogue::Add;
      Value sum = adds ? loadFloat(k, out, row) : k.zero(k.f32());
      for (Value one : all)
        sum = k.add(sum, one);
      storeFloat(k, sum, out, row);
    });
  });
}

} // namespace expert_row

} // namespace izhc::cuda
