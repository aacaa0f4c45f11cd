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

} // namespace izhc::lm
