// Units as PackOps.td defines them for each op, and grains.

#include "compiler/transforms/plan/Work.h"
#include "compiler/formats/PackedLayout.h"
#include "compiler/transforms/plan/Placement.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

namespace izhc {

// Large enough that taking a piece costs nothing, small enough that threads
// end together.
static constexpr int64_t kPieceBytes = 768 << 10;
static constexpr int64_t kLeastPieces = 16;

static int64_t grainFor(int64_t units, int64_t bytes) {
  int64_t bySize = std::max<int64_t>(1, kPieceBytes / std::max<int64_t>(1, bytes / units));
  return std::min<int64_t>(bySize, llvm::divideCeil(units, kLeastPieces));
}

// Tiles that a product may multiply together: pieces of an even grain are even.
static int64_t evenGrainFor(int64_t tiles, int64_t bytes) {
  return llvm::alignTo(grainFor(tiles, bytes), 2);
}

static plan::Extent extentOf(pack::RowSet rows) {
  return rows == pack::RowSet::Tokens ? plan::Extent::Tokens : plan::Extent::Outputs;
}

static int64_t operationsOf(pack::WeightType type) { return 2 * type.getRows() * type.getCols(); }

static Work divide(pack::MatmulOp op) {
  int64_t tiles = 0, bytes = 0, first = -1, operations = 0;
  for (mlir::Value weight : op.getWeights()) {
    auto type = llvm::cast<pack::WeightType>(weight.getType());
    int64_t count = llvm::divideCeil(type.getRows(), PackedLayout::kTileRows);
    first = first < 0 ? count : first;
    tiles += count;
    bytes += count * Placement::tileBytes(type);
    operations += operationsOf(type);
  }
  // Gate and up are computed together.
  int64_t units = pack::isGated(op.getEpilogue()) ? first : tiles;
  int64_t grain = units == tiles ? evenGrainFor(units, bytes) : grainFor(units, bytes);
  bool outputs = op.getRowSet() == pack::RowSet::Outputs;
  return {units, plan::Extent::Fixed,      grain,
          bytes, outputs ? 0 : operations, outputs ? operations : 0};
}

static Work divide(pack::MatmulHeadsOp op) {
  int64_t group = std::lcm<int64_t>(op.getHeadDim(), PackedLayout::kTileRows);
  int64_t units = 0, bytes = 0, operations = 0;
  for (mlir::Value weight : op.getWeights()) {
    auto type = llvm::cast<pack::WeightType>(weight.getType());
    // The last group of a matrix may be a part of one.
    units += llvm::divideCeil(type.getRows(), group);
    bytes += llvm::divideCeil(type.getRows(), PackedLayout::kTileRows) * Placement::tileBytes(type);
    operations += operationsOf(type);
  }
  return {units, plan::Extent::Fixed, grainFor(units, bytes), bytes, operations};
}

// A step of one token reads the matrices of the experts that it chose.
static Work divideTiles(mlir::ValueRange weights, mlir::Value routes) {
  int64_t units = 0, bytes = 0, operations = 0;
  for (mlir::Value weight : weights) {
    auto type = llvm::cast<pack::WeightType>(weight.getType());
    units = llvm::divideCeil(type.getRows(), PackedLayout::kTileRows);
    bytes += units * Placement::tileBytes(type);
    operations += operationsOf(type);
  }
  int64_t chosen = llvm::cast<pack::RoutesType>(routes.getType()).getChosen();
  bytes *= chosen;
  int64_t grain = weights.size() == 1 ? evenGrainFor(units, bytes) : grainFor(units, bytes);
  return {units, plan::Extent::Fixed, grain, bytes, chosen * operations};
}

Work divideWork(mlir::Operation *op) {
  return llvm::TypeSwitch<mlir::Operation *, Work>(op)
      .Case<pack::MatmulOp, pack::MatmulHeadsOp>([](auto typed) { return divide(typed); })
      .Case<pack::MapOp, pack::NormOp>(
          [](auto typed) { return Work{1, extentOf(typed.getRowSet()), 1}; })
      .Case([](pack::QuantizeOp typed) {
        int64_t rows = typed.getPerToken();
        return Work{rows, extentOf(typed.getRowSet()), rows};
      })
      .Case([](pack::HeadMatmulOp typed) {
        auto type = llvm::cast<pack::WeightType>(typed.getWeight().getType());
        int64_t tiles = type.getCount() * llvm::divideCeil(type.getRows(), PackedLayout::kTileRows);
        return Work{tiles, plan::Extent::Fixed,
                    grainFor(tiles, tiles * Placement::tileBytes(type))};
      })
      .Case([](pack::RouteOp) { return Work{1, plan::Extent::Fixed, 1}; })
      .Case([](pack::ExpertGateOp typed) {
        return divideTiles(typed.getWeights(), typed.getRoutes());
      })
      .Case(
          [](pack::ExpertSumOp typed) { return divideTiles(typed.getWeight(), typed.getRoutes()); })
      .Case([](pack::AttentionOp typed) {
        auto cache = llvm::cast<pack::KvType>(typed.getCache().getType());
        return Work{cache.getHeads(), plan::Extent::Tiles, 1};
      })
      .Case([](pack::MergeOp typed) {
        return Work{int64_t(typed.getHeads()), plan::Extent::Merges, 4};
      })
      .Case([](pack::ShortConvOp typed) {
        int64_t width = llvm::cast<mlir::ShapedType>(typed.getInput().getType()).getShape().back();
        return Work{int64_t(llvm::divideCeil(width, pack::ShortConvOp::kColumns)),
                    plan::Extent::Sequences, 1};
      })
      .Case([](pack::DeltaRuleOp typed) {
        int64_t heads = llvm::cast<mlir::ShapedType>(typed.getDecay().getType()).getShape().back();
        return Work{heads, plan::Extent::Sequences, 1};
      })
      .Default([](mlir::Operation *) { return Work{1, plan::Extent::Tokens, 1}; });
}

} // namespace izhc
