// Forms of `attention`, and of `matmul` and `matmul_heads` on tensor cores. A block has a tile of
// weight rows, which lie in one matrix, and a tile of the step's rows.

#include "targets/cuda/codegen/Forms.h"
#include "targets/cuda/codegen/AttentionCore.h"
#include "targets/cuda/codegen/AttentionTile.h"
#include "targets/cuda/codegen/AttentionWarps.h"
#include "targets/cuda/codegen/Epilogue.h"
#include "targets/cuda/codegen/HeadFinish.h"
#include "targets/cuda/codegen/ProductTile.h"
#include <numeric>

namespace izhc::cuda {

using namespace mlir;

namespace {

constexpr int64_t kTile = PackedLayout::kTileRows;
// The least rows for which padding to a tile costs less than the other form.
constexpr int64_t kLeastRows = 9;
constexpr int64_t kFewRecords = 32;
constexpr int64_t kLeastTileRows = 4;

pack::WeightType weightType(Value operand) { return cast<pack::WeightType>(operand.getType()); }

int64_t tilesOf(Value operand) { return llvm::divideCeil(weightType(operand).getRows(), kTile); }

// Rows of the largest steps; blocks of a large GPU at a time, two of a multiprocessor.
constexpr int64_t kManyRows = 512, kAtOnce = 2 * 132;
// What a tile costs beside its records, in records' cost.
constexpr int64_t kTileCost = 10;

// A tile with as many records as make the blocks for `groups` groups of 128 rows and
// the largest steps fill a GPU evenly.
TileShape tileFor(int64_t groups) {
  int64_t best = 0, least = 0;
  for (int64_t records : {64, 48, 32, 16}) {
    int64_t blocks = groups * llvm::divideCeil(kManyRows, records);
    int64_t cost = llvm::divideCeil(blocks, kAtOnce) * (records + kTileCost);
    if (!best || cost < least) {
      best = records;
      least = cost;
    }
  }
  return {/*rows=*/128, best, /*columns=*/64, /*down=*/4, /*across=*/1, 2};
}
// There is code for each matrix.
constexpr size_t kMostMatrices = 4;

bool allTaken(ValueRange weights, Value act) {
  return weights.size() <= kMostMatrices && llvm::all_of(weights, [&](Value weight) {
           return ProductTile::takes(weightType(weight), cast<pack::ActType>(act.getType()));
         });
}

int64_t sharedBytes(const TileShape &shape, ValueRange weights, Value act) {
  int64_t most = 0;
  for (Value weight : weights)
    most = std::max(most, ProductTile::sharedBytes(shape, weightType(weight),
                                                   cast<pack::ActType>(act.getType())));
  return most;
}

bool allSplit(ValueRange weights, Value act) {
  return llvm::all_of(weights, [&](Value weight) {
    return ProductTile::splits(weightType(weight), cast<pack::ActType>(act.getType()));
  });
}

// What a block does in forms whose units are groups of rows of several matrices,
// `tilesEach` tiles of 16 rows a group, times tiles of the step's rows.
struct Division {
  ValueRange weights;
  int64_t tilesEach;

  int64_t groupsOf(Value weight) const { return llvm::divideCeil(tilesOf(weight), tilesEach); }
  int64_t groups() const {
    int64_t sum = 0;
    for (Value weight : weights)
      sum += groupsOf(weight);
    return sum;
  }
  // Blocks beside each other have the same rows of weights, so that these come
  // from memory once: unit = group * tiles of records + tile of records.
  std::pair<Value, Value> groupAndTile(Block &block, Value rows, int64_t rowsEach) const {
    KernelBuilder &k = block.k;
    Value tiles = k.div(k.add(rows, rowsEach - 1), rowsEach);
    return {k.div(block.unit, tiles), k.rem(block.unit, tiles)};
  }
  // Calls body(matrix, first tile) for the matrix of a group.
  void forMatrix(Block &block, Value group, llvm::function_ref<void(size_t, Value)> body) const {
    KernelBuilder &k = block.k;
    int64_t first = 0;
    for (auto [matrix, weight] : llvm::enumerate(weights)) {
      int64_t count = groupsOf(weight);
      Value here = k.add(group, -first);
      auto emit = [&] { body(matrix, k.mul(here, tilesEach)); };
      Value inside = k.andBits(k.lessEqual(k.constI64(0), here), k.less(here, k.constI64(count)));
      if (weights.size() == 1)
        emit();
      else
        k.ifThen(inside, emit);
      first += count;
    }
  }
};

// ---- matmul

struct MatmulForm {
  pack::MatmulOp op;
  TileShape shape;

  bool gated() { return pack::isGated(op.getEpilogue()); }
  Division division() {
    return {op.getWeights().take_front(gated() ? 1 : op.getWeights().size()),
            shape.tiles() / (gated() ? 2 : 1)};
  }

  LogicalResult emit(Block &block) {
    Value shared = block.shared(sharedBytes(shape, op.getWeights(), op.getAct()));
    SmallVector<Weights> weights;
    SmallVector<int64_t> firstRows = {0};
    for (Value operand : op.getWeights()) {
      auto reader = Weights::of(op, block, operand.getType());
      if (!reader)
        return failure();
      weights.push_back(*reader);
      firstRows.push_back(firstRows.back() + reader->rows());
    }
    auto [group, tile] = division().groupAndTile(block, block.rows(op.getRowSet()), shape.records);
    Value first = block.k.mul(tile, shape.records);
    division().forMatrix(block, group, [&](size_t matrix, Value firstTile) {
      auto tile = ProductTile::make(block, shape, shared, weights[matrix].weightType(),
                                    cast<pack::ActType>(op.getAct().getType()));
      emitTile(block, *tile, weights, matrix, firstTile, first, firstRows[matrix]);
    });
    return success();
  }

  void emitTile(Block &block, ProductTile &tile, ArrayRef<Weights> weights, size_t matrix,
                Value firstTile, Value first, int64_t firstRow) {
    KernelBuilder &k = block.k;
    const Weights &reader = weights[matrix];
    Value rows = block.rows(op.getRowSet());
    auto tileAt = [&](Value i) {
      Value base = block.address(op.getWeights()[matrix]);
      if (gated()) {
        base =
            k.select(k.equal(k.rem(i, 2), k.constI64(0)), base, block.address(op.getWeights()[1]));
        i = k.div(i, 2);
      }
      Value number = k.min(k.add(firstTile, i), k.constI64(reader.tiles() - 1));
      return k.at(base, k.mul(number, reader.tileBytes()));
    };
    auto recordAt = [&](Value i) { return actRecord(block, op.getAct(), k.add(first, i), rows); };
    auto sums = tile.compute(reader, tileAt, recordAt, cast<pack::ActType>(op.getAct().getType()));
    tile.forSums(sums, gated(), [&](ArrayRef<ProductTile::Sum> some) {
      store(block, some, matrix, k.mul(firstTile, kTile), first, firstRow, reader.rows());
    });
  }

  // Rows from `firstRow` on of matrix number `matrix`, which has `count` and
  // begins with row `before` of the result.
  void store(Block &block, ArrayRef<ProductTile::Sum> sums, size_t matrix, Value firstRow,
             Value firstToken, int64_t before, int64_t count) {
    KernelBuilder &k = block.k;
    Value rows = block.rows(op.getRowSet());
    struct Place {
      Value inside, at, old, bias, secondBias;
    };
    SmallVector<Place> places;
    // All loads come before the first store, lest each waits for the one before.
    for (const ProductTile::Sum &sum : sums) {
      Value row = k.add(firstRow, sum.row), token = k.add(firstToken, sum.record);
      Value isToken = k.less(token, rows), isRow = k.less(row, k.constI64(count));
      Value here = k.min(row, k.constI64(count - 1)), there = k.min(token, k.add(rows, -1));
      Place place;
      place.inside = k.andBits(isRow, isToken);
      place.at = k.at(block.rowOf(op.getInto(), there), k.mul(k.add(here, before), 4));
      if (op.getEpilogue() == pack::Epilogue::Add)
        place.old = k.load(k.f32(), place.at, 4);
      if (!op.getBiases().empty()) {
        place.bias = loadFloat(k, block.address(op.getBiases()[matrix]), here);
        if (gated())
          place.secondBias = loadFloat(k, block.address(op.getBiases()[matrix + 1]), here);
      }
      places.push_back(place);
    }
    for (auto [sum, place] : llvm::zip(sums, places)) {
      Value y = place.bias ? k.add(sum.value, place.bias) : sum.value;
      Value up = place.secondBias ? k.add(sum.second, place.secondBias) : sum.second;
      k.ifThen(place.inside, [&, place = place] {
        k.store(matmulResult(k, op, y, up, place.at, place.old), place.at, 4);
      });
    }
  }
};

// ---- matmul_heads

struct HeadsForm {
  pack::MatmulHeadsOp op;
  TileShape shape;

  int64_t dim() { return op.getHeadDim(); }
  // Whole heads, which begin where a tile of 16 rows does.
  int64_t rowsEach() {
    int64_t group = std::lcm(dim(), kTile);
    return shape.rows / group * group;
  }
  Division division() { return {op.getWeights(), rowsEach() / kTile}; }

  // Between the products of records, so that neighbouring lanes write to
  // different banks.
  int64_t stride() { return shape.rows + 4; }

  LogicalResult emit(Block &block) {
    int64_t results = 4 * stride() * shape.records;
    Value shared =
        block.shared(std::max(sharedBytes(shape, op.getWeights(), op.getAct()), results));
    HeadFinish finisher(block, op);
    LogicalResult result = success();
    auto [group, tile] = division().groupAndTile(block, block.tokens, shape.records);
    Value first = block.k.mul(tile, shape.records);
    division().forMatrix(block, group, [&](size_t matrix, Value firstTile) {
      auto weights = Weights::of(op, block, op.getWeights()[matrix].getType());
      if (!weights) {
        result = failure();
        return;
      }
      auto tile = ProductTile::make(block, shape, shared, weights->weightType(),
                                    cast<pack::ActType>(op.getAct().getType()));
      emitTile(block, *tile, finisher, *weights, matrix, firstTile, first, shared);
    });
    return result;
  }

  void emitTile(Block &block, ProductTile &tile, HeadFinish &finisher, const Weights &weights,
                size_t matrix, Value firstTile, Value first, Value results) {
    KernelBuilder &k = block.k;
    auto tileAt = [&](Value i) {
      Value number = k.min(k.add(firstTile, i), k.constI64(weights.tiles() - 1));
      return k.at(block.address(op.getWeights()[matrix]), k.mul(number, weights.tileBytes()));
    };
    auto recordAt = [&](Value i) {
      return actRecord(block, op.getAct(), k.add(first, i), block.tokens);
    };
    auto sums = tile.compute(weights, tileAt, recordAt, cast<pack::ActType>(op.getAct().getType()));
    tile.forSums(sums, /*paired=*/false, [&](ArrayRef<ProductTile::Sum> some) {
      for (const ProductTile::Sum &sum : some)
        storeFloat(k, sum.value, results, k.add(k.mul(sum.record, stride()), sum.row));
    });
    block.barrier();
    Value firstHead = k.div(k.mul(firstTile, kTile), dim());
    Value heads =
        k.min(k.constI64(rowsEach() / dim()), k.sub(k.constI64(weights.rows() / dim()), firstHead));
    Value records = k.min(k.constI64(shape.records), k.sub(block.tokens, first));
    k.loop(block.warp, k.mul(records, heads), block.warps(), [&](Value pair) {
      Value record = k.div(pair, heads), inTile = k.rem(pair, heads);
      Value at = k.add(k.mul(record, stride()), k.mul(inTile, dim()));
      finisher.finish(matrix, k.add(firstHead, inTile), k.add(first, record),
                      k.at(results, k.mul(at, 4)));
    });
  }
};

template <typename Built>
Form formOf(Built built, int64_t leastRows, izh::schema::FormRows rows = izh::schema::kTokenRows) {
  return {built.shape.threads(),
          built.shape.together,
          built.division().groups(),
          built.shape.records,
          leastRows,
          rows,
          [built](Block &block) mutable { return built.emit(block); }};
}

} // namespace

Forms formsOf(pack::MatmulOp op) {
  bool gated = pack::isGated(op.getEpilogue());
  // Both matrices of a gated product are read by the same code.
  auto rows =
      op.getRowSet() == pack::RowSet::Outputs ? izh::schema::kOutputRows : izh::schema::kTokenRows;
  if (!allTaken(op.getWeights(), op.getAct()) ||
      (gated && op.getWeights()[0].getType() != op.getWeights()[1].getType()))
    return {formOfFewRows(op, rows)};
  TileShape few = {/*rows=*/64, /*records=*/32, /*columns=*/64,
                   /*down=*/2,  /*across=*/2,   2};
  if (allSplit(op.getWeights(), op.getAct())) {
    TileShape split = {/*rows=*/32, /*records=*/32, /*columns=*/64,
                       /*down=*/1,  /*across=*/1,   2,
                       /*split=*/8};
    // Where there are many rows, warps that divide them have less to add up.
    if (MatmulForm{op, split}.division().groups() <= kAtOnce)
      few = split;
    else
      few = {/*rows=*/64, /*records=*/32, /*columns=*/64, /*down=*/2, /*across=*/1, 6};
  }
  int64_t groups = MatmulForm{op, tileFor(1)}.division().groups();
  return {formOf(MatmulForm{op, few}, kLeastRows, rows),
          formOf(MatmulForm{op, tileFor(groups)}, kFewRecords + 1, rows)};
}

Forms formsOf(pack::MatmulHeadsOp op) {
  int64_t group = std::lcm<int64_t>(op.getHeadDim(), kTile);
  TileShape few = {/*rows=*/128, /*records=*/32, /*columns=*/64,
                   /*down=*/4,   /*across=*/2,   2};
  if (allSplit(op.getWeights(), op.getAct()))
    few = {/*rows=*/128, /*records=*/16, /*columns=*/64, /*down=*/4, /*across=*/1, 1,
           /*split=*/4};
  TileShape wide = {/*rows=*/256, /*records=*/32, /*columns=*/32,
                    /*down=*/8,   /*across=*/1,   2};
  if (!allTaken(op.getWeights(), op.getAct()) || group > wide.rows)
    return {};
  if (group > few.rows)
    return {formOf(HeadsForm{op, wide}, kLeastRows)};
  int64_t groups = HeadsForm{op, tileFor(1)}.division().groups();
  return {formOf(HeadsForm{op, few}, kLeastRows),
          formOf(HeadsForm{op, tileFor(groups)}, kFewRecords + 1)};
}

Forms formsOf(pack::AttentionOp op) {
  int64_t heads = cast<pack::KvType>(op.getCache().getType()).getHeads();
  if (AttentionCore::takes(op))
    return {Form{attention_warps::kThreads, attention_warps::kTogether,
                 heads * attention_warps::batches(op), 1, kLeastTileRows, izh::schema::kTileRows,
                 [op](Block &block) { return attention_warps::emit(block, op); }}};
  if (!AttentionTile::takes(op))
    return {};
  return {Form{AttentionTile::kThreads, AttentionTile::kTogether,
               heads * AttentionTile::batches(op), 1, kLeastTileRows, izh::schema::kTileRows,
               [op](Block &block) { return AttentionTile::emit(block, op); }}};
}

} // namespace izhc::cuda
