// Forms of `expert_gate` and `expert_sum` for many rows, on tensor cores: a block
// has some rows of an expert's matrices and a tile of its pairs. Weighted products
// go to the scratch, by rows and in each row by ascending expert; then they are
// added in that order.

#include "targets/cuda/codegen/Epilogue.h"
#include "targets/cuda/codegen/Forms.h"
#include "targets/cuda/codegen/PairTiles.h"
#include "targets/cuda/codegen/ProductTile.h"

namespace izhc::cuda {

using namespace mlir;

namespace {

constexpr int64_t kTile = PackedLayout::kTileRows;
constexpr int64_t kLeastRows = 9;
// Rows of the largest steps, whose experts have about so many pairs each.
constexpr int64_t kManyRows = 512;
constexpr int64_t kAddThreads = 256;

TileShape shapeFor(pack::RoutesType routes) {
  int64_t each = kManyRows * routes.getChosen() / routes.getExperts();
  if (each >= 64)
    return {/*rows=*/128, /*records=*/64, /*columns=*/64, /*down=*/4, /*across=*/2, 2};
  return {/*rows=*/128, /*records=*/32, /*columns=*/64, /*down=*/4, /*across=*/1, 3};
}

// What both ops have: stacks of matrices (two: gate and up), and pairs.
struct Stacks {
  Operation *op;
  ValueRange weights, biases;
  Value act, routes;
  TileShape shape;

  pack::WeightType type() const { return cast<pack::WeightType>(weights[0].getType()); }
  pack::RoutesType routesType() const { return cast<pack::RoutesType>(routes.getType()); }
  bool paired() const { return weights.size() == 2; }
  int64_t tilesEach() const { return shape.tiles() / weights.size(); }
  int64_t groups() const {
    return llvm::divideCeil(llvm::divideCeil(type().getRows(), kTile), tilesEach());
  }
  // So many blocks for each group that about each tile has its own.
  int64_t rowsEach() const {
    return std::max<int64_t>(1, shape.records / routesType().getChosen() / 2);
  }
  int64_t sharedBytes() const {
    return ProductTile::sharedBytes(shape, type(), cast<pack::ActType>(act.getType()));
  }
  bool taken() const {
    return ProductTile::takes(type(), cast<pack::ActType>(act.getType())) &&
           llvm::all_of(weights, [&](Value one) { return one.getType() == type(); });
  }

  // Calls body(tile of pairs, first row, sums) for the block's tiles.
  using Body = llvm::function_ref<void(const PairTiles::Tile &, Value, ProductTile &,
                                       const Block::Values &)>;
  LogicalResult emit(Block &block, Value shared, Body body) const {
    KernelBuilder &k = block.k;
    auto reader = Weights::of(op, block, type());
    if (!reader)
      return failure();
    auto actType = cast<pack::ActType>(act.getType());
    auto tile = ProductTile::make(block, shape, shared, type(), actType);
    Value group = k.rem(block.unit, groups()), firstTile = k.mul(group, tilesEach());
    Value blocks = k.div(k.add(block.tokens, rowsEach() - 1), rowsEach());
    PairTiles pairs(block, block.address(routes), routesType(), shape.records);
    pairs.forEach(k.div(block.unit, groups()), blocks, [&](const PairTiles::Tile &mine) {
      auto tileAt = [&](Value i) {
        Value base = block.address(weights[0]);
        if (paired()) {
          Value isFirst = k.equal(k.rem(i, 2), k.constI64(0));
          base = k.select(isFirst, base, block.address(weights[1]));
          i = k.div(i, 2);
        }
        Value number = k.min(k.add(firstTile, i), k.constI64(reader->tiles() - 1));
        Value matrix = k.at(base, k.mul(mine.expert, reader->matrixBytes()));
        return k.at(matrix, k.mul(number, reader->tileBytes()));
      };
      auto recordAt = [&](Value i) {
        Value pair = k.min(k.add(mine.first, i), k.add(mine.end, -1));
        return k.at(block.address(act), k.mul(pair, pack::ActLayout(actType).stride));
      };
      Block::Values sums = tile->compute(*reader, tileAt, recordAt, actType);
      body(mine, k.mul(firstTile, kTile), *tile, sums);
    });
    return success();
  }

  // `sum` with the bias of stack `which`, of row `row` of an expert's matrix.
  Value biased(Block &block, Value sum, size_t which, Value expert, Value row) const {
    if (biases.empty())
      return sum;
    KernelBuilder &k = block.k;
    Value at = k.add(k.mul(expert, type().getRows()), row);
    return k.add(sum, loadFloat(k, block.address(biases[which]), at));
  }

  Form form(std::function<LogicalResult(Block &)> emit) const {
    return {shape.threads(), shape.together,          groups(),       rowsEach(),
            kLeastRows,      izh::schema::kTokenRows, std::move(emit)};
  }
};

// ---- expert_gate

struct GateForm {
  pack::ExpertGateOp op;

  Stacks stacks() {
    return {
        op,          op.getWeights(), op.getBiases(),
        op.getAct(), op.getRoutes(),  shapeFor(cast<pack::RoutesType>(op.getRoutes().getType()))};
  }

  LogicalResult emit(Block &block) {
    KernelBuilder &k = block.k;
    Stacks all = stacks();
    Value shared = block.shared(all.sharedBytes());
    int64_t rows = all.type().getRows();
    return all.emit(
        block, shared,
        [&](const PairTiles::Tile &mine, Value firstRow, ProductTile &tile,
            const Block::Values &sums) {
          tile.forSums(sums, /*paired=*/true, [&](ArrayRef<ProductTile::Sum> some) {
            for (const ProductTile::Sum &sum : some) {
              Value row = k.add(firstRow, sum.row), pair = k.add(mine.first, sum.record);
              Value inside = k.andBits(k.less(row, k.constI64(rows)), k.less(pair, mine.end));
              k.ifThen(inside, [&] {
                Value gate = all.biased(block, sum.value, 0, mine.expert, row);
                Value up = all.biased(block, sum.second, 1, mine.expert, row);
                storeFloat(k, gatedResult(k, op, gate, up), block.rowOf(op.getInto(), pair), row);
              });
            }
          });
        });
  }
};

// ---- expert_sum

struct SumForm {
  pack::ExpertSumOp op;

  Stacks stacks() {
    return {op,
            op.getODSOperands(2),
            op.getODSOperands(3),
            op.getAct(),
            op.getRoutes(),
            shapeFor(cast<pack::RoutesType>(op.getRoutes().getType()))};
  }
  int64_t rows() { return cast<pack::WeightType>(op.getWeight().getType()).getRows(); }
  int64_t chosen() { return cast<pack::RoutesType>(op.getRoutes().getType()).getChosen(); }
  // Of row `row` of the step, the product with the expert that `rank` others of the
  // row's come before.
  Value place(Block &block, Value row, Value rank) {
    KernelBuilder &k = block.k;
    Value number = k.add(k.mul(row, chosen()), rank);
    return k.at(block.rowScratch(), k.mul(number, 4 * rows()));
  }

  // Shared memory for each pair of a tile: where its products go (an offset from
  // the scratch), and its weight.
  static constexpr int64_t kPlaceBytes = 16, kWeight = 8;

  LogicalResult emit(Block &block) {
    KernelBuilder &k = block.k;
    Stacks all = stacks();
    Value shared = block.shared(all.sharedBytes());
    return all.emit(
        block, shared,
        [&](const PairTiles::Tile &mine, Value firstRow, ProductTile &tile,
            const Block::Values &sums) {
          block.forThreads(all.shape.records, [&](Value i) { placePair(block, mine, i, shared); });
          block.barrier();
          tile.forSums(sums, /*paired=*/false, [&](ArrayRef<ProductTile::Sum> some) {
            for (const ProductTile::Sum &sum : some) {
              Value row = k.add(firstRow, sum.row), pair = k.add(mine.first, sum.record);
              Value at = k.at(shared, k.mul(sum.record, kPlaceBytes));
              Value inside = k.andBits(k.less(row, k.constI64(rows())), k.less(pair, mine.end));
              k.ifThen(inside, [&] {
                Value y = all.biased(block, sum.value, 0, mine.expert, row);
                Value to = k.at(block.rowScratch(), k.load(k.i64(), at, 8));
                storeFloat(k, k.mul(y, k.load(k.f32(), k.at(at, kWeight), 4)), to, row);
              });
            }
          });
        });
  }

  void placePair(Block &block, const PairTiles::Tile &mine, Value i, Value shared) {
    KernelBuilder &k = block.k;
    pack::RoutesLayout layout(cast<pack::RoutesType>(op.getRoutes().getType()));
    Value pairs = k.at(block.address(op.getRoutes()), layout.pairs());
    Value pair = k.min(k.add(mine.first, i), k.add(mine.end, -1));
    Value entry = k.at(pairs, k.mul(pair, layout.kPairBytes));
    Value row = loadIndex(k, entry, k.constI64(0)), rank = k.constI64(0);
    for (int64_t j = 0; j < chosen(); ++j) {
      Value choice = k.at(pairs, k.mul(k.add(k.mul(row, chosen()), j), layout.kPairBytes));
      Value other = loadIndex(k, k.at(choice, layout.kChoice), k.constI64(0));
      rank = k.add(rank, k.select(k.less(other, mine.expert), k.constI64(1), k.constI64(0)));
    }
    Value at = k.at(shared, k.mul(i, kPlaceBytes));
    k.store(k.mul(k.add(k.mul(row, chosen()), rank), 4 * rows()), at, 8);
    Value scale = k.constFloat(k.f32(), op.getScale().convertToDouble());
    Value weight = k.mul(k.load(k.f32(), k.at(entry, layout.kWeight), 4), scale);
    k.store(weight, k.at(at, kWeight), 4);
  }

  // A block for each row of the step.
  LogicalResult add(Block &block) {
    KernelBuilder &k = block.k;
    Value out = block.rowOf(op.getInto(), block.unit);
    bool adds = op.getEpilogue() == pack::Epilogue::Add;
    block.forThreads(rows(), [&](Value i) {
      Block::Values products;
      for (int64_t rank = 0; rank < chosen(); ++rank)
        products.push_back(loadFloat(k, place(block, block.unit, k.constI64(rank)), i));
      Value sum = adds ? loadFloat(k, out, i) : k.zero(k.f32());
      for (Value product : products)
        sum = k.add(sum, product);
      storeFloat(k, sum, out, i);
    });
    return success();
  }
};

} // namespace

Forms formsOf(pack::ExpertGateOp op) {
  GateForm built{op};
  if (!built.stacks().taken())
    return {};
  return {built.stacks().form([built](Block &block) mutable { return built.emit(block); })};
}

Forms formsOf(pack::ExpertSumOp op) {
  SumForm built{op};
  if (!built.stacks().taken())
    return {};
  Form form = built.stacks().form([built](Block &block) mutable { return built.emit(block); });
  form.then = [built](Block &block) mutable { return built.add(block); };
  form.thenThreads = kAddThreads;
  form.scratchOfRow = 4 * built.rows() * built.chosen();
  return {form};
}

} // namespace izhc::cuda
