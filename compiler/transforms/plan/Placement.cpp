// Sizes and offsets. Weights come in the order of first use, which is the
// order in which a step reads them.

#include "compiler/transforms/plan/Placement.h"
#include "compiler/formats/PackedLayout.h"
#include "compiler/transforms/Limits.h"
#include "dialects/pack/ActLayout.h"
#include "dialects/pack/RoutesLayout.h"
#include "dialects/plan/Window.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

namespace izhc {

// Vector code may touch this much behind the last float of rows and vectors.
static constexpr int64_t kSlack = 64;

static int64_t take(int64_t &end, int64_t bytes) {
  int64_t at = end;
  end = llvm::alignTo(at + bytes, plan::kAlignment);
  return at;
}

static PackedLayout layoutOf(pack::WeightType type) {
  return PackedLayout(*findFormat(type.getFormat().getValue()));
}

int64_t Placement::tileBytes(pack::WeightType type) {
  return layoutOf(type).tileBytes(type.getCols());
}

Place Placement::addBuffer(mlir::Type type, pack::RowSet rowSet, int64_t perToken) {
  return addBuffer(type, perToken * (rowSet == pack::RowSet::Tokens ? kMaxTokens : maxOutputs));
}

Place Placement::addBuffer(mlir::Type type, int64_t rows) {
  Place place;
  place.type = type;
  if (auto routes = llvm::dyn_cast<pack::RoutesType>(type)) {
    place.size = pack::RoutesLayout(routes).bytes(rows);
  } else if (auto act = llvm::dyn_cast<pack::ActType>(type)) {
    place.size = rows * pack::ActLayout(act).stride;
  } else {
    auto shape = llvm::cast<mlir::ShapedType>(type);
    place.type = mlir::MemRefType::get(shape.getShape(), shape.getElementType());
    place.size = rows * shape.getShape().back() * 4 + kSlack;
  }
  place.size = llvm::alignTo(place.size, plan::kAlignment);
  place.offset = take(arenaEnd, place.size);
  return place;
}

Place Placement::placeWeight(pack::PackWeightOp op) {
  auto [known, isNew] = weightPlaces.try_emplace({op.getNameAttr(), op.getViewAttr()});
  if (!isNew)
    return known->second;
  auto type = llvm::cast<pack::WeightType>(op.getResult().getType());
  int64_t bytes = type.getCount() * layoutOf(type).matrixBytes(type.getRows(), type.getCols());
  Place place{plan::Space::Weights, 0, bytes, type};
  place.offset = take(weightEnd, place.size);
  weights.emplace_back(op, place);
  known->second = place;
  return place;
}

Place Placement::placeVector(pack::PackVectorOp op) {
  // Named alike, they may still differ: computed vectors are told apart by
  // their values, tensors by their names.
  auto [known, isNew] = vectorPlaces.try_emplace({op.getNameAttr(), op.getValuesAttr()});
  if (!isNew)
    return known->second;
  auto type = llvm::cast<mlir::RankedTensorType>(op.getResult().getType());
  Place place{plan::Space::Constants, 0, type.getNumElements() * 4 + kSlack,
              mlir::MemRefType::get(type.getShape(), type.getElementType())};
  place.size = llvm::alignTo(place.size, plan::kAlignment);
  place.offset = take(constantEnd, place.size);
  vectors.emplace_back(op, place);
  known->second = place;
  return place;
}

Place Placement::placeState(pack::PackStateOp op) {
  auto [known, isNew] = stateNumbers.try_emplace(op.getName(), states.size());
  if (isNew)
    states.push_back(op);
  return {plan::Space::State, known->second, 0, op.getResult().getType()};
}

static int64_t inputNumber(pack::PackInputOp op) {
  if (!op->hasAttr(plan::kWindowed))
    return int64_t(op.getKind());
  return op.getKind() == pack::StepInput::Slots ? plan::kWindowSlots : plan::kWindowPages;
}

llvm::FailureOr<Place> Placement::find(mlir::Value value, mlir::Operation *user) {
  auto known = places.find(value);
  if (known != places.end())
    return known->second;
  mlir::Operation *source = value.getDefiningOp();
  if (!source)
    return user->emitError("reads a value that comes from outside of the function");
  Place place;
  if (auto op = llvm::dyn_cast<pack::PackWeightOp>(source))
    place = placeWeight(op);
  else if (auto op = llvm::dyn_cast<pack::PackVectorOp>(source))
    place = placeVector(op);
  else if (auto op = llvm::dyn_cast<pack::PackStateOp>(source))
    place = placeState(op);
  else if (auto op = llvm::dyn_cast<pack::PackInputOp>(source))
    place = {plan::Space::Input, inputNumber(op), 0,
             mlir::MemRefType::get({mlir::ShapedType::kDynamic},
                                   mlir::IntegerType::get(op.getContext(), 32))};
  else
    return source->emitOpError("has no kernel of its own, and no pass could make it a part of one: "
                               "a model of this make can't be compiled yet");
  places[value] = place;
  return place;
}

void Placement::writeTables(mlir::OpBuilder &builder) const {
  for (auto [op, place] : weights) {
    auto type = llvm::cast<pack::WeightType>(place.type);
    plan::WeightOp::create(builder, op.getLoc(), op.getName(), type.getFormat().getValue(),
                           type.getRows(), type.getCols(), place.offset, place.size,
                           op.getViewAttr(), type.getCount());
  }
  for (auto [op, place] : vectors)
    plan::ConstantOp::create(
        builder, op.getLoc(), op.getNameAttr(),
        builder.getI64IntegerAttr(llvm::cast<mlir::MemRefType>(place.type).getNumElements()),
        builder.getI64IntegerAttr(place.offset), builder.getI64IntegerAttr(place.size),
        op.getValuesAttr());
  for (pack::PackStateOp op : states) {
    auto slots = llvm::dyn_cast<pack::SlotsType>(op.getResult().getType());
    int64_t bytes = slots ? slots.getSlotBytes()
                          : llvm::cast<pack::KvType>(op.getResult().getType()).getPageBytes();
    auto state = plan::StateOp::create(builder, op.getLoc(), op.getName(), bytes, bool(slots));
    plan::setWindow(state, plan::windowOf(op));
  }
}

} // namespace izhc
