// Registration, verifiers and folds of the `lm` dialect.

#include "dialects/lm/Lm.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#include "dialects/lm/LmDialect.cpp.inc"
#include "dialects/lm/LmEnums.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/lm/LmTypes.cpp.inc"

#define GET_OP_CLASSES
#include "dialects/lm/LmOps.cpp.inc"

namespace izhc::lm {

void LmDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/lm/LmTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/lm/LmOps.cpp.inc"
      >();
}

llvm::LogicalResult KvCacheType::verify(llvm::function_ref<mlir::InFlightDiagnostic()> emitError,
                                        int64_t heads, int64_t dim, int64_t values) {
  if (heads < 1 || dim < 1 || values < 0)
    return emitError() << "a cache needs at least one head and one value a head";
  return mlir::success();
}

llvm::LogicalResult ConstantOp::verify() {
  if (int64_t(getValues().size()) != widthOf(getResult()))
    return emitOpError("has ") << getValues().size() << " values for a vector of "
                               << widthOf(getResult());
  return mlir::success();
}

llvm::LogicalResult WeightOp::verify() {
  auto view = getView();
  if (!view)
    return mlir::success();
  if (llvm::cast<mlir::RankedTensorType>(getType()).getRank() != 2)
    return emitOpError("is a view of something that is no matrix");
  if (view->size() != 3 || (*view)[0] < 0 || (*view)[1] < 1 || (*view)[2] < (*view)[1])
    return emitOpError("needs a view of three numbers: first row, rows of a run, and from one run "
                       "to the next");
  return mlir::success();
}

llvm::LogicalResult SoftCapOp::verify() {
  if (!(getCap().convertToFloat() > 0))
    return emitOpError("needs a cap above zero");
  return mlir::success();
}

llvm::LogicalResult SliceOp::verify() {
  int64_t first = getFirst();
  if (first < 0 || first > widthOf(getInput()) - widthOf(getResult()))
    return emitOpError("takes ") << widthOf(getResult()) << " columns from " << first << " on of "
                                 << widthOf(getInput());
  return mlir::success();
}

llvm::LogicalResult EmbedOp::verify() {
  if (widthOf(getWeight()) != widthOf(getResult()))
    return emitOpError("makes rows of ") << widthOf(getResult()) << " values from a matrix of "
                                         << widthOf(getWeight()) << " columns";
  return mlir::success();
}

llvm::LogicalResult RmsNormOp::verify() {
  int64_t over = getOver();
  if (over < 1 || widthOf(getInput()) % over != 0)
    return emitOpError("can't cut rows of ")
           << widthOf(getInput()) << " values into runs of " << over;
  if (getScale() && widthOf(getScale()) != over)
    return emitOpError("has a scale of ") << widthOf(getScale()) << " values for runs of " << over;
  if (getEps().convertToFloat() < 0)
    return emitOpError("needs an eps that is not negative");
  return mlir::success();
}

llvm::LogicalResult LinearOp::verify() {
  size_t matrices = getWeights().size();
  if (matrices == 0 || getResults().size() != matrices)
    return emitOpError("has ") << matrices << " matrices for " << getResults().size() << " results";
  if (!getBiases().empty() && getBiases().size() != matrices)
    return emitOpError("has ") << getBiases().size() << " biases for " << matrices << " matrices";
  for (auto [weight, result] : llvm::zip(getWeights(), getResults())) {
    auto shape = llvm::cast<mlir::RankedTensorType>(weight.getType()).getShape();
    if (shape[1] != widthOf(getInput()))
      return emitOpError("multiplies rows of ")
             << widthOf(getInput()) << " values with a matrix of " << shape[1] << " columns";
    if (shape[0] != widthOf(result))
      return emitOpError("makes rows of ")
             << widthOf(result) << " values from a matrix of " << shape[0] << " rows";
  }
  for (auto [bias, result] : llvm::zip(getBiases(), getResults()))
    if (widthOf(bias) != widthOf(result))
      return emitOpError("adds a bias of ")
             << widthOf(bias) << " values to rows of " << widthOf(result);
  return mlir::success();
}

mlir::OpFoldResult ScaleOp::fold(FoldAdaptor) {
  if (getFactor().convertToFloat() == 1.0f)
    return getInput();
  // A scale of a scale by an exact power of two, which is the only product
  // that can't round differently from two products.
  auto inner = getInput().getDefiningOp<ScaleOp>();
  if (!inner || !getFactor().getExactInverse(nullptr))
    return {};
  llvm::APFloat product = inner.getFactor();
  if (product.multiply(getFactor(), llvm::APFloat::rmNearestTiesToEven) != llvm::APFloat::opOK)
    return {};
  getInputMutable().assign(inner.getInput());
  setFactor(product);
  return getResult();
}

llvm::LogicalResult ShortConvOp::verify() {
  RowStateType state = getState().getType();
  int64_t width = widthOf(getInput()), taps = state.getRows() + 1;
  if (state.getWidth() != width || state.getRows() < 1 || widthOf(getWeight()) != width * taps)
    return emitOpError("needs a weight of ")
           << width * taps << " values and a state of rows of " << width << ", but has "
           << widthOf(getWeight()) << " and " << state;
  return mlir::success();
}

llvm::LogicalResult DeltaRuleOp::verify() {
  DeltaStateType state = getState().getType();
  int64_t heads = state.getHeads(), keyHeads = getKeyHeads();
  if (heads < 1 || keyHeads < 1 || heads % keyHeads != 0 || state.getKeys() < 1 ||
      state.getValues() < 1)
    return emitOpError("can't share ") << keyHeads << " key heads among the heads of " << state;
  int64_t mixed = 2 * keyHeads * state.getKeys() + heads * state.getValues();
  if (widthOf(getMixed()) != mixed || widthOf(getResult()) != heads * state.getValues())
    return emitOpError("needs rows of ")
           << mixed << " values and makes rows of " << heads * state.getValues();
  if (widthOf(getDecay()) != heads || widthOf(getRate()) != heads)
    return emitOpError("needs one number for each of its ") << heads << " heads";
  return mlir::success();
}

llvm::LogicalResult RopeAnglesOp::verify() {
  if (2 * widthOf(getFrequencies()) != widthOf(getResult()))
    return emitOpError("makes rows of ") << widthOf(getResult()) << " values from "
                                         << widthOf(getFrequencies()) << " frequencies";
  return mlir::success();
}

llvm::LogicalResult RopeOp::verify() {
  int64_t dim = getHeadDim(), rotary = widthOf(getAngles());
  if (dim < 1 || widthOf(getInput()) % dim != 0)
    return emitOpError("can't cut rows of ")
           << widthOf(getInput()) << " values into heads of " << dim;
  if (rotary % 2 != 0 || rotary > dim)
    return emitOpError("can't turn ") << rotary << " values of heads of " << dim;
  return mlir::success();
}

llvm::LogicalResult AppendOp::verify() {
  KvCacheType cache = getCache().getType();
  int64_t keys = cache.getHeads() * cache.getDim(), values = cache.getHeads() * cache.getValueDim();
  if (widthOf(getKeys()) != keys || widthOf(getValues()) != values)
    return emitOpError("needs keys of ")
           << keys << " and values of " << values << " columns, but has " << widthOf(getKeys())
           << " and " << widthOf(getValues());
  return mlir::success();
}

llvm::LogicalResult AttentionOp::verify() {
  KvCacheType cache = getCache().getType();
  int64_t heads = getHeads();
  if (heads < 1 || heads % cache.getHeads() != 0)
    return emitOpError("can't share ")
           << cache.getHeads() << " key heads among " << heads << " query heads";
  if (widthOf(getQueries()) != heads * cache.getDim())
    return emitOpError("needs queries of ")
           << heads * cache.getDim() << " values, but has " << widthOf(getQueries());
  if (widthOf(getResult()) != heads * cache.getValueDim())
    return emitOpError("makes rows of ")
           << heads * cache.getValueDim() << " values, not of " << widthOf(getResult());
  if (getSinks() && widthOf(getSinks()) != heads)
    return emitOpError("has ") << widthOf(getSinks()) << " sinks for " << heads << " heads";
  if (int64_t(getWindow()) < 0 || getSoftcap().convertToFloat() < 0)
    return emitOpError("needs a window and a softcap that are not negative");
  return mlir::success();
}

llvm::LogicalResult RoutesType::verify(llvm::function_ref<mlir::InFlightDiagnostic()> emitError,
                                       int64_t experts, int64_t chosen) {
  if (chosen < 1 || chosen > experts)
    return emitError() << "can't choose " << chosen << " of " << experts << " experts";
  return mlir::success();
}

llvm::LogicalResult RouteOp::verify() {
  RoutesType routes = getResult().getType();
  int64_t experts = routes.getExperts();
  int64_t groups = getGroups(), chosen = getGroupChosen(), best = getGroupBest();
  if (widthOf(getRatings()) != experts)
    return emitOpError("chooses among ")
           << experts << " experts by " << widthOf(getRatings()) << " ratings";
  if (getBias() && widthOf(getBias()) != experts)
    return emitOpError("has a bias of ")
           << widthOf(getBias()) << " values for " << experts << " experts";
  if (getBias() && getScore() == Score::SoftmaxChosen)
    return emitOpError("ranks by ratings alone, so it can't have a bias");
  if (groups < 1 || experts % groups != 0 || chosen < 1 || chosen > groups || best < 1 ||
      best > std::min<int64_t>(2, experts / groups))
    return emitOpError("can't take ") << chosen << " of " << groups << " groups of " << experts
                                      << " experts by their best " << best;
  if (chosen * (experts / groups) < routes.getChosen())
    return emitOpError("needs ") << routes.getChosen() << " experts from groups that have "
                                 << chosen * (experts / groups);
  return mlir::success();
}

llvm::LogicalResult ExpertsOp::verify() {
  auto shape = [](mlir::Value value) {
    return llvm::cast<mlir::RankedTensorType>(value.getType()).getShape();
  };
  int64_t experts = getRoutes().getType().getExperts(), width = widthOf(getInput());
  int64_t hidden = shape(getGate())[1];
  if (shape(getGate()) != llvm::ArrayRef<int64_t>{experts, hidden, width} ||
      shape(getUp()) != shape(getGate()) ||
      shape(getDown()) != llvm::ArrayRef<int64_t>{experts, width, hidden})
    return emitOpError("has matrices that don't fit rows of ")
           << width << " values and " << experts << " experts";
  if (getBiases().empty())
    return mlir::success();
  if (getBiases().size() != 3 || widthOf(getBiases()[0]) != experts * hidden ||
      widthOf(getBiases()[1]) != experts * hidden || widthOf(getBiases()[2]) != experts * width)
    return emitOpError("needs biases of gate, up and down, as many values as their matrices have "
                       "rows");
  return mlir::success();
}

llvm::LogicalResult HeadLinearOp::verify() {
  auto shape = llvm::cast<mlir::RankedTensorType>(getWeight().getType()).getShape();
  if (widthOf(getInput()) != shape[0] * shape[2] || widthOf(getResult()) != shape[0] * shape[1])
    return emitOpError("has ") << shape[0] << " matrices of " << shape[1] << " x " << shape[2]
                               << " for rows of " << widthOf(getInput()) << " and "
                               << widthOf(getResult()) << " values";
  return mlir::success();
}

llvm::LogicalResult JoinOp::verify() {
  int64_t heads = getHeads(), lhs = widthOf(getLhs()), rhs = widthOf(getRhs());
  if (heads < 1 || lhs % heads != 0 || rhs % heads != 0 || lhs + rhs != widthOf(getResult()))
    return emitOpError("can't make rows of ") << widthOf(getResult()) << " values of " << heads
                                              << " heads from " << lhs << " and " << rhs;
  return mlir::success();
}

llvm::LogicalResult ScaleRowsOp::verify() {
  if (widthOf(getFactors()) != 1)
    return emitOpError("needs one factor a row, but has ") << widthOf(getFactors());
  return mlir::success();
}

} // namespace izhc::lm
