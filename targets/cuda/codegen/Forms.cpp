// Forms of `attention`, and of `matmul` and `matmul_heads` on tensor cores. A block has a tile of
// weight rows, which lie in one matrix, and a tile of the step's rows.

#include "targets/cuda/codegen/Forms.h"
#include "targets/cuda/codegen/AttentionTile.h"
#include "targets/cuda/codegen/Epilogue.h"
#include "targets/cuda/codegen/HeadFinish.h"
#include "targets/cuda/codegen/IntTile.h"
#include <numeric>

namespace izhc::cuda {

using namespace mlir;

namespace {

constexpr int64_t kTile = PackedLayout::kTileRows;
// The least rows for which padding to a tile costs less than the other form.
constexpr int64_t kLeastRows = 9;
constexpr int64_t kLeastTileRows = 4;

pack::WeightType weightType(Value operand) { return cast<pack::WeightType>(operand.getType()); }

int64_t tilesOf(Value operand) { return llvm::divideCeil(weightType(operand).getRows(), kTile); }

// Of matrices with so few groups of rows, smaller tiles keep more of a GPU busy.
constexpr int64_t kFewGroups = 16;
// Blocks of a product that run beside each other, to hide each other's waits.
constexpr int64_t kTogether = 2;
// There is code for each matrix.
constexpr size_t kMostMatrices = 4;

bool allTaken(ValueRange weights, Value act) {
  return weights.size() <= kMostMatrices && llvm::all_of(weights, [&](Value weight) {
           return IntTile::takes(weightType(weight), cast<pack::ActType>(act.getType()));
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
  // Calls body(matrix, first tile) for the block's matrix.
  void forBlock(Block &block, llvm::function_ref<void(size_t, Value)> body) const {
    KernelBuilder &k = block.k;
    Value group = k.rem(block.unit, groups());
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
  Value firstRecord(Block &block, int64_t rowsEach) const {
    return block.k.mul(block.k.div(block.unit, groups()), rowsEach);
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
    Value shared = block.shared(IntTile::sharedBytes(shape));
    SmallVector<Weights> weights;
    SmallVector<int64_t> firstRows = {0};
    for (Value operand : op.getWeights()) {
      auto reader = Weights::of(op, block, operand.getType());
      if (!reader)
        return failure();
      weights.push_back(*reader);
      firstRows.push_back(firstRows.back() + reader->rows());
    }
    division().forBlock(block, [&](size_t matrix, Value firstTile) {
      emitTile(block, IntTile(block, shape, shared), weights, matrix, firstTile, firstRows[matrix]);
    });
    return success();
  }

  void emitTile(Block &block, IntTile tile, ArrayRef<Weights> weights, size_t matrix,
                Value firstTile, int64_t firstRow) {
    KernelBuilder &k = block.k;
    const Weights &reader = weights[matrix];
    Value rows = block.rows(op.getRowSet());
    Value first = division().firstRecord(block, shape.records);
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
    auto store = [&](Value inTile, Value record, Value y, Value up) {
      Value row = k.add(k.mul(firstTile, kTile), inTile), token = k.add(first, record);
      Value inside = k.andBits(k.less(row, k.constI64(reader.rows())), k.less(token, rows));
      k.ifThen(inside, [&] {
        auto biased = [&](Value sum, size_t which) {
          return op.getBiases().empty()
                     ? sum
                     : k.add(sum, loadFloat(k, block.address(op.getBiases()[which]), row));
        };
        Value place = k.at(block.rowOf(op.getInto(), token), k.mul(k.add(row, firstRow), 4));
        Value result =
            matmulResult(k, op, biased(y, matrix), up ? biased(up, matrix + 1) : up, place);
        k.store(result, place, 4);
      });
    };
    if (gated())
      tile.forPairs(sums, store);
    else
      tile.forSums(sums, [&](Value row, Value record, Value y) { store(row, record, y, {}); });
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
    Value shared = block.shared(std::max(IntTile::sharedBytes(shape), results));
    HeadFinish finisher(block, op);
    LogicalResult result = success();
    division().forBlock(block, [&](size_t matrix, Value firstTile) {
      auto weights = Weights::of(op, block, op.getWeights()[matrix].getType());
      if (!weights)
        result = failure();
      else
        emitTile(block, IntTile(block, shape, shared), finisher, *weights, matrix, firstTile,
                 shared);
    });
    return result;
  }

  void emitTile(Block &block, IntTile tile, HeadFinish &finisher, const Weights &weights,
                size_t matrix, Value firstTile, Value results) {
    KernelBuilder &k = block.k;
    Value first = division().firstRecord(block, shape.records);
    auto tileAt = [&](Value i) {
      Value number = k.min(k.add(firstTile, i), k.constI64(weights.tiles() - 1));
      return k.at(block.address(op.getWeights()[matrix]), k.mul(number, weights.tileBytes()));
    };
    auto recordAt = [&](Value i) {
      return actRecord(block, op.getAct(), k.add(first, i), block.tokens);
    };
    auto sums = tile.compute(weights, tileAt, recordAt, cast<pack::ActType>(op.getAct().getType()));
    tile.forSums(sums, [&](Value row, Value record, Value y) {
      storeFloat(k, y, results, k.add(k.mul(record, stride()), row));
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
          kTogether,
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
  if (!allTaken(op.getWeights(), op.getAct()) ||
      (gated && op.getWeights()[0].getType() != op.getWeights()[1].getType()))
    return {};
  auto rows =
      op.getRowSet() == pack::RowSet::Outputs ? izh::schema::kOutputRows : izh::schema::kTokenRows;
  TileShape few = {/*rows=*/64, /*records=*/32, /*columns=*/64, /*down=*/2, /*across=*/2};
  TileShape many = {/*rows=*/128, /*records=*/64, /*columns=*/64, /*down=*/4, /*across=*/2};
  if (MatmulForm{op, many}.division().groups() <= kFewGroups)
    return {formOf(MatmulForm{op, few}, kLeastRows, rows)};
  return {formOf(MatmulForm{op, few}, kLeastRows, rows),
          formOf(MatmulForm{op, many}, few.records + 1, rows)};
}

Forms formsOf(pack::MatmulHeadsOp op) {
  int64_t group = std::lcm<int64_t>(op.getHeadDim(), kTile);
  TileShape few = {/*rows=*/128, /*records=*/32, /*columns=*/64, /*down=*/4, /*across=*/2};
  TileShape many = {/*rows=*/128, /*records=*/64, /*columns=*/64, /*down=*/4, /*across=*/2};
  TileShape wide = {/*rows=*/256, /*records=*/32, /*columns=*/32, /*down=*/8, /*across=*/1};
  if (!allTaken(op.getWeights(), op.getAct()) || group > wide.rows)
    return {};
  if (group > many.rows)
    return {formOf(HeadsForm{op, wide}, kLeastRows)};
  return {formOf(HeadsForm{op, few}, kLeastRows), formOf(HeadsForm{op, many}, few.records + 1)};
}

Forms formsOf(pack::AttentionOp op) {
  if (!AttentionTile::takes(op))
    return {};
  int64_t heads = cast<pack::KvType>(op.getCache().getType()).getHeads();
  return {Form{AttentionTile::kThreads, 1, heads * AttentionTile::batches(op), 1, kLeastTileRows,
               izh::schema::kTileRows,
               [op](Block &block) { return AttentionTile::emit(block, op); }}};
}

} // namespace izhc::cuda
