// Products of pairs with their experts' matrices: `expert_gate` and
// `expert_sum`. A block has one tile of 16 rows of every expert that has pairs.

#include "dialects/pack/RoutesLayout.h"
#include "targets/cuda/codegen/Epilogue.h"
#include "targets/cuda/codegen/ExpertRow.h"
#include "targets/cuda/codegen/Lowering.h"
#include "targets/cuda/codegen/RowBatch.h"

namespace izhc::cuda {

using namespace mlir;

namespace {

constexpr int64_t kTile = PackedLayout::kTileRows;
constexpr int64_t kRecords = 8;

// The stacks of an op, read with its activations.
struct Stacks {
  Block &block;
  KernelBuilder &k;
  Operation *op;
  Value act, table;
  pack::ActType actType;
  pack::RoutesLayout layout;
  SmallVector<Weights> weights;
  SmallVector<Value> bases, biases;
  SmallVector<RowBatch> batches;

  Stacks(Block &block, Operation *op, Value act, Value routes)
      : block(block), k(block.k), op(op), act(act), table(block.address(routes)),
        actType(cast<pack::ActType>(act.getType())),
        layout(cast<pack::RoutesType>(routes.getType())) {}

  LogicalResult init(ValueRange weightOperands, ValueRange biasOperands) {
    for (Value operand : weightOperands) {
      auto reader = Weights::of(op, block, operand.getType());
      if (!reader || !reader->takes(op, actType))
        return failure();
      weights.push_back(*reader);
      bases.push_back(block.address(operand));
      batches.emplace_back(block, /*tiles=*/1, kRecords, reader->spans());
    }
    for (Value operand : biasOperands)
      biases.push_back(block.address(operand));
    return success();
  }

  Value pairEntry(Value pair) {
    return k.at(k.at(table, layout.pairs()), k.mul(pair, layout.kPairBytes));
  }

  // One stack's sum for a pair that compute has treated.
  Value product(size_t which, Value expert, Value record, Value inTile, Value row) {
    Value y = batches[which].product(record, inTile);
    if (biases.empty())
      return y;
    Value at = k.add(k.mul(expert, weights[which].rows()), row);
    return k.add(y, loadFloat(k, biases[which], at));
  }

  // Calls store(expert, pair, record, place in the tile, row) in one thread for
  // each pair and each row of the block's tile, expert after expert.
  void forEach(llvm::function_ref<void(Value, Value, Value, Value, Value)> store) {
    auto field = [&](Value address, int64_t offset) {
      return k.extendS(k.load(k.i32(), k.at(address, offset), 4), k.i64());
    };
    k.loop(k.constI64(0), field(table, 0), 1, [&](Value i) {
      Value entry = k.at(k.at(table, layout.kExperts), k.mul(i, layout.kExpertBytes));
      Value expert = field(entry, 0), first = field(entry, layout.kFirst);
      Value end = k.add(first, field(entry, layout.kCount));
      auto batch = [&](Value from, int64_t count) {
        compute(expert, from, count, end);
        block.forThreads(count * kTile, [&](Value thread) {
          Value inTile = k.rem(thread, kTile), record = k.div(thread, kTile);
          Value row = k.add(k.mul(block.unit, kTile), inTile), pair = k.add(from, record);
          Value inside = k.andBits(k.less(row, k.constI64(weights[0].rows())), k.less(pair, end));
          k.ifThen(inside, [&] { store(expert, pair, record, inTile, row); });
        });
        batches.front().release();
      };
      k.ifThenElse(
          k.equal(k.add(first, 1), end), [&] { batch(first, 1); },
          [&] { k.loop(first, end, kRecords, [&](Value from) { batch(from, kRecords); }); });
    });
  }

  void compute(Value expert, Value from, int64_t count, Value end) {
    SmallVector<Value> records;
    for (int64_t i = 0; i < count; ++i) {
      Value pair = k.min(k.add(from, i), k.add(end, -1));
      records.push_back(k.at(block.address(act), k.mul(pair, pack::ActLayout(actType).stride)));
    }
    for (size_t which = 0; which < weights.size(); ++which) {
      Value offset = k.add(k.mul(expert, weights[which].matrixBytes()),
                           k.mul(block.unit, weights[which].tileBytes()));
      batches[which].compute(weights[which], k.at(bases[which], offset), k.constI64(1), records,
                             actType);
    }
  }
};

} // namespace

Value gatedResult(KernelBuilder &k, pack::ExpertGateOp op, Value gate, Value up) {
  if (op.getGating() != pack::Gating::LimitedSilu)
    return k.mul(k.silu(gate), up);
  Value limit = k.constFloat(k.f32(), op.getLimit().convertToDouble());
  Value alpha = k.constFloat(k.f32(), op.getAlpha().convertToDouble());
  Value one = k.constFloat(k.f32(), 1);
  gate = k.min(gate, limit);
  up = k.max(k.neg(limit), k.min(up, limit));
  Value power = k.exp(k.neg(k.mul(alpha, gate)));
  return k.mul(k.div(gate, k.add(one, power)), k.add(up, one));
}

LogicalResult emitExpertGate(Block &block, pack::ExpertGateOp op) {
  if (block.oneRow) {
    expert_row::emit(block, op);
    return success();
  }
  KernelBuilder &k = block.k;
  Stacks stacks(block, op, op.getAct(), op.getRoutes());
  if (failed(stacks.init(op.getWeights(), op.getBiases())))
    return failure();
  stacks.forEach([&](Value expert, Value pair, Value record, Value inTile, Value row) {
    Value gate = stacks.product(0, expert, record, inTile, row);
    Value up = stacks.product(1, expert, record, inTile, row);
    storeFloat(k, gatedResult(k, op, gate, up), block.rowOf(op.getInto(), pair), row);
  });
  return success();
}

LogicalResult emitExpertSum(Block &block, pack::ExpertSumOp op) {
  if (block.oneRow) {
    expert_row::emit(block, op);
    return success();
  }
  KernelBuilder &k = block.k;
  Stacks stacks(block, op, op.getAct(), op.getRoutes());
  SmallVector<Value, 1> biases;
  if (op.getBias())
    biases.push_back(op.getBias());
  if (failed(stacks.init(op.getWeight(), biases)))
    return failure();
  if (op.getEpilogue() == pack::Epilogue::Store) {
    int64_t rows = stacks.weights[0].rows();
    block.forThreads(k.mul(block.tokens, kTile), [&](Value i) {
      Value row = k.add(k.mul(block.unit, kTile), k.rem(i, kTile));
      k.ifThen(k.less(row, k.constI64(rows)), [&] {
        storeFloat(k, k.zero(k.f32()), block.rowOf(op.getInto(), k.div(i, kTile)), row);
      });
    });
    block.barrier();
  }
  Value scale = k.constFloat(k.f32(), op.getScale().convertToDouble());
  stacks.forEach([&](Value expert, Value pair, Value record, Value inTile, Value row) {
    Value entry = stacks.pairEntry(pair), token = loadIndex(k, entry, k.constI64(0));
    Value weight = k.mul(k.load(k.f32(), k.at(entry, stacks.layout.kWeight), 4), scale);
    Value out = block.rowOf(op.getInto(), token);
    Value y = k.mul(stacks.product(0, expert, record, inTile, row), weight);
    storeFloat(k, k.add(loadFloat(k, out, row), y), out, row);
  });
  return success();
}

} // namespace izhc::cuda
