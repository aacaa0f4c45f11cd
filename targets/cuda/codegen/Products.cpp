// Products of activations with encoded matrices: `matmul` and `head_matmul`,
// one tile of 16 rows a block.

#include "targets/cuda/codegen/Epilogue.h"
#include "targets/cuda/codegen/FloatRow.h"
#include "targets/cuda/codegen/Forms.h"
#include "targets/cuda/codegen/Lowering.h"
#include "targets/cuda/codegen/PairProducts.h"
#include "targets/cuda/codegen/RowBatch.h"

namespace izhc::cuda {

using namespace mlir;

namespace {

constexpr int64_t kTile = PackedLayout::kTileRows;
// Rows of activations that meet a weight at a time; one where there is one only.
constexpr int64_t kRecords = 8;

// Calls body(first, count) for all rows, a few at a time.
void forBatches(KernelBuilder &k, Value rows, llvm::function_ref<void(Value, int64_t)> body) {
  k.ifThenElse(
      k.equal(rows, k.constI64(1)), [&] { body(k.constI64(0), 1); },
      [&] { k.loop(k.constI64(0), rows, kRecords, [&](Value first) { body(first, kRecords); }); });
}

struct MatmulEmitter {
  Block &block;
  pack::MatmulOp op;
  KernelBuilder &k;
  pack::ActType act;
  Value rows;
  SmallVector<Weights> weights;
  SmallVector<Value> bases, biases;
  SmallVector<RowBatch> batches; // two where the epilogue is gated

  MatmulEmitter(Block &block, pack::MatmulOp op)
      : block(block), op(op), k(block.k), act(cast<pack::ActType>(op.getAct().getType())),
        rows(block.rows(op.getRowSet())) {
    for (int64_t i = 0; i < (pack::isGated(op.getEpilogue()) ? 2 : 1); ++i)
      batches.emplace_back(block, /*tiles=*/1, kRecords, Spans(act.getWidth()));
  }

  LogicalResult init() {
    for (Value operand : op.getWeights()) {
      auto reader = Weights::of(op, block, operand.getType());
      if (!reader || !reader->takes(op, act))
        return failure();
      weights.push_back(*reader);
      bases.push_back(block.address(operand));
    }
    for (Value operand : op.getBiases())
      biases.push_back(block.address(operand));
    return success();
  }

  Value sum(size_t matrix, size_t batch, Value record, Value inTile, Value row) {
    Value y = batches[batch].product(record, inTile);
    return biases.empty() ? y : k.add(y, loadFloat(k, biases[matrix], row));
  }

  // The only rows of activations: kRecords from here on; null: all.
  Value firstRecord;

  // Tile `tile` of a matrix (and of the next where the epilogue is gated), whose
  // rows begin at `firstRow` of the result.
  void emitTile(size_t matrix, Value tile, int64_t firstRow) {
    auto batch = [&](Value first, int64_t count) {
      SmallVector<Value> records;
      for (int64_t i = 0; i < count; ++i)
        records.push_back(actRecord(block, op.getAct(), k.add(first, i), rows));
      for (size_t i = 0; i < batches.size(); ++i) {
        Value address = k.at(bases[matrix + i], k.mul(tile, weights[matrix + i].tileBytes()));
        batches[i].compute(weights[matrix + i], address, k.constI64(1), records, act);
      }
      block.forThreads(count * kTile, [&](Value i) { store(matrix, tile, firstRow, first, i); });
      batches.front().release();
    };
    if (firstRecord)
      batch(firstRecord, kRecords);
    else
      forBatches(k, rows, batch);
  }

  // Thread `i`: row i % 16 of the tile of row of activations first + i / 16.
  void store(size_t matrix, Value tile, int64_t firstRow, Value first, Value i) {
    Value inTile = k.rem(i, kTile), record = k.div(i, kTile), token = k.add(first, record);
    Value row = k.add(k.mul(tile, kTile), inTile);
    Value inside = k.andBits(k.less(row, k.constI64(weights[matrix].rows())), k.less(token, rows));
    k.ifThen(inside, [&] {
      Value y = sum(matrix, 0, record, inTile, row);
      Value up = batches.size() == 2 ? sum(matrix + 1, 1, record, inTile, row) : y;
      Value place = k.at(block.rowOf(op.getInto(), token), k.mul(k.add(row, firstRow), 4));
      k.store(matmulResult(k, op, y, up, place), place, 4);
    });
  }

  // `unit`: number of the tile among those of all matrices.
  void emit(Value unit) {
    int64_t firstTile = 0, firstRow = 0;
    size_t matrices = batches.size() == 2 ? 1 : weights.size();
    for (size_t matrix = 0; matrix < matrices; ++matrix) {
      int64_t tiles = weights[matrix].tiles();
      Value tile = k.add(unit, -firstTile);
      if (matrices == 1) {
        emitTile(matrix, tile, firstRow);
      } else {
        Value inside = k.andBits(k.lessEqual(k.constI64(0), tile), k.less(tile, k.constI64(tiles)));
        k.ifThen(inside, [&] { emitTile(matrix, tile, firstRow); });
      }
      firstTile += tiles;
      firstRow += weights[matrix].rows();
    }
  }
};

} // namespace

LogicalResult emitMatmul(Block &block, pack::MatmulOp op) {
  if (isPaired(op)) {
    emitPairedMatmul(block, op);
    return success();
  }
  if (block.oneRow)
    return float_row::emit(block, op);
  block.prepare();
  MatmulEmitter emitter(block, op);
  if (failed(emitter.init()))
    return failure();
  emitter.emit(block.unit);
  return success();
}

Form formOfFewRows(pack::MatmulOp op, izh::schema::FormRows rows) {
  int64_t tiles = 0;
  for (Value weight :
       op.getWeights().take_front(pack::isGated(op.getEpilogue()) ? 1 : op.getWeights().size()))
    tiles += llvm::divideCeil(cast<pack::WeightType>(weight.getType()).getRows(), kTile);
  auto emit = [op, tiles](Block &block) mutable -> LogicalResult {
    MatmulEmitter emitter(block, op);
    if (failed(emitter.init()))
      return failure();
    emitter.firstRecord = block.k.mul(block.k.div(block.unit, tiles), kRecords);
    emitter.emit(block.k.rem(block.unit, tiles));
    return success();
  };
  return {threadsOf(op), 1, tiles, kRecords, kRecords + 1, rows, emit};
}

// `firstToken`: the only tokens are kRecords from here on; null: all.
static LogicalResult emitHeads(Block &block, pack::HeadMatmulOp op, Value unit, Value firstToken) {
  KernelBuilder &k = block.k;
  auto type = cast<pack::WeightType>(op.getWeight().getType());
  auto act = cast<pack::ActType>(op.getAct().getType());
  auto weights = Weights::of(op, block, type);
  if (!weights || !weights->takes(op, act))
    return failure();
  int64_t heads = type.getCount();
  RowBatch batch(block, /*tiles=*/1, kRecords, weights->spans());
  Value head = k.div(unit, weights->tiles()), tile = k.rem(unit, weights->tiles());
  Value address = k.add(k.mul(head, weights->matrixBytes()), k.mul(tile, weights->tileBytes()));
  address = k.at(block.address(op.getWeight()), address);
  Value records = k.mul(block.tokens, heads);
  auto compute = [&](Value first, int64_t count) {
    SmallVector<Value> acts;
    for (int64_t i = 0; i < count; ++i)
      acts.push_back(
          actRecord(block, op.getAct(), k.add(k.mul(k.add(first, i), heads), head), records));
    batch.compute(*weights, address, k.constI64(1), acts, act);
    block.forThreads(count * kTile, [&](Value i) {
      Value inTile = k.rem(i, kTile), record = k.div(i, kTile), token = k.add(first, record);
      Value row = k.add(k.mul(tile, kTile), inTile);
      Value inside =
          k.andBits(k.less(row, k.constI64(weights->rows())), k.less(token, block.tokens));
      k.ifThen(inside, [&] {
        storeFloat(k, batch.product(record, inTile), block.rowOf(op.getInto(), token),
                   k.add(k.mul(head, weights->rows()), row));
      });
    });
    batch.release();
  };
  if (firstToken)
    compute(firstToken, kRecords);
  else
    forBatches(k, block.tokens, compute);
  return success();
}

LogicalResult emitHeadMatmul(Block &block, pack::HeadMatmulOp op) {
  return emitHeads(block, op, block.unit, {});
}

Forms formsOf(pack::HeadMatmulOp op) {
  auto type = cast<pack::WeightType>(op.getWeight().getType());
  int64_t groups = type.getCount() * llvm::divideCeil(type.getRows(), kTile);
  auto emit = [op, groups](Block &block) mutable {
    Value first = block.k.mul(block.k.div(block.unit, groups), kRecords);
    return emitHeads(block, op, block.k.rem(block.unit, groups), first);
  };
  return {{threadsOf(op), 1, groups, kRecords, kRecords + 1, izh::schema::kTokenRows, emit}};
}

} // namespace izhc::cuda
