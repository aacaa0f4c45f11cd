#include "targets/cuda/codegen/ProductTile.h"
#include "targets/cuda/codegen/IntTile.h"
#include "targets/cuda/codegen/PairSplit.h"
#include "targets/cuda/codegen/PairTile.h"

namespace izhc::cuda {

bool ProductTile::takes(pack::WeightType weights, pack::ActType act) {
  return IntTile::takes(weights, act);
}

bool ProductTile::splits(pack::WeightType weights, pack::ActType act) {
  return PairTile::takes(weights, act);
}

int64_t ProductTile::sharedBytes(const TileShape &shape, pack::WeightType weights,
                                 pack::ActType act) {
  if (shape.split > 1)
    return PairSplit::sharedBytes(shape);
  return PairTile::takes(weights, act) ? PairTile::sharedBytes(shape, weights)
                                       : IntTile::sharedBytes(shape);
}

std::unique_ptr<ProductTile> ProductTile::make(Block &block, const TileShape &shape, Value shared,
                                               pack::WeightType weights, pack::ActType act) {
  if (shape.split > 1)
    return std::make_unique<PairSplit>(block, shape, shared, weights, act);
  if (PairTile::takes(weights, act))
    return std::make_unique<PairTile>(block, shape, shared, weights, act);
  return std::make_unique<IntTile>(block, shape, shared);
}

} // namespace izhc::cuda
