// Verifiers of the ops that become kernels. They hold in both forms: what is a
// tensor in one is a memref in the other.

#include "dialects/pack/KvLayout.h"

namespace izhc::pack {

using llvm::LogicalResult;
using mlir::Operation;
using mlir::Type;
using mlir::Value;

namespace {

// The size of the last dimension if `type` is an array of that rank and
// element with a fixed last dimension, else -1.
int64_t lastSize(Type type, int64_t rank, bool isFloat) {
  auto shaped = llvm::dyn_cast<mlir::ShapedType>(type);
  if (!shaped || !shaped.hasRank() || shaped.getRank() != rank ||
      (isFloat ? !shaped.getElementType().isF32() : !shaped.getElementType().isInteger(32)))
    return -1;
  return shaped.getShape().back();
}

// Checks with the first failure kept, as a sentence at the op.
class Checker {
public:
  explicit Checker(Operation *op) : op(op) {}

  void rows(Value value, const char *what, int64_t width) { rows(value.getType(), what, width); }
  void rows(Type type, const char *what, int64_t width) {
    if (!bad && lastSize(type, 2, true) != width)
      fail(op->emitOpError("needs rows of float32 of width ")
           << width << " as its " << what << ", but has " << type);
  }
  void vector(Value value, const char *what, int64_t count) {
    if (!bad && value && lastSize(value.getType(), 1, true) != count)
      fail(op->emitOpError("needs a float32 vector of length ")
           << count << " as its " << what << ", but has " << value.getType());
  }
  void numbers(Value value, const char *what) {
    auto shaped = llvm::dyn_cast<mlir::ShapedType>(value.getType());
    if (!bad && (!shaped || !shaped.getElementType().isInteger(32)))
      fail(op->emitOpError("needs an array of int32 as its ")
           << what << ", but has " << value.getType());
  }
  // Returns the type, or null after a failure.
  template <typename T> T as(Type type, const char *what) {
    auto typed = llvm::dyn_cast<T>(type);
    if (!bad && !typed)
      fail(op->emitOpError("can't take this type as its ") << what << ": " << type);
    return typed;
  }
  // One of destination and results, not both.
  void oneForm(Value into, size_t results) {
    if (!bad && bool(into) == (op->getNumResults() != 0))
      fail(op->emitOpError("needs a destination or results, not both and not none"));
    if (!bad && !into && op->getNumResults() != results)
      fail(op->emitOpError("has the wrong count of results: ") << op->getNumResults());
  }
  template <typename Message> void require(bool holds, Message message) {
    if (!bad && !holds)
      fail(op->emitOpError(message));
  }
  // The rows that a tensor form adds to.
  void residual(Value residual, Epilogue epilogue, Value into, int64_t width) {
    require(bool(residual) == (epilogue == Epilogue::Add && !into),
            "has a residual exactly if it is a tensor form that adds");
    if (residual)
      rows(residual, "residual", width);
  }
  // Matrices, or stacks of `count`, whose columns fit `act`, and a bias for each
  // or none. Returns the rows of all together.
  int64_t matrices(ActType act, mlir::ValueRange weights, mlir::ValueRange biases,
                   int64_t count = 1) {
    if (!bad && !biases.empty() && biases.size() != weights.size())
      fail(op->emitOpError("has ") << biases.size() << " biases, but not one for each of its "
                                   << weights.size() << " matrices");
    int64_t total = 0;
    for (size_t i = 0; i < weights.size() && !bad; ++i) {
      auto weight = as<WeightType>(weights[i].getType(), "matrix");
      if (!weight)
        break;
      if (weight.getCols() != act.getWidth())
        fail(op->emitOpError("multiplies activations of width ")
             << act.getWidth() << " with a matrix of " << weight.getCols() << " columns");
      if (!bad && weight.getCount() != count)
        fail(op->emitOpError("needs stacks of ")
             << count << " matrices, but has one of " << weight.getCount());
      if (!biases.empty())
        vector(biases[i], "bias", count * weight.getRows());
      total += weight.getRows();
    }
    return total;
  }

  bool failed() const { return bad; }
  LogicalResult result() { return mlir::success(!bad); }

private:
  // The diagnostic goes out when its temporary ends.
  void fail(mlir::InFlightDiagnostic &&) { bad = true; }

  Operation *op;
  bool bad = false;
};

Type resultType(Operation *op, Value into) {
  return into ? into.getType() : op->getResult(0).getType();
}

} // namespace

LogicalResult EmbedOp::verify() {
  Checker check(*this);
  check.oneForm(getInto(), 1);
  check.numbers(getIds(), "ids");
  auto weight = check.as<WeightType>(getWeight().getType(), "matrix");
  if (!check.failed())
    check.rows(resultType(*this, getInto()), "result", weight.getCols());
  return check.result();
}

LogicalResult RopeTableOp::verify() {
  Checker check(*this);
  check.oneForm(getInto(), 1);
  check.numbers(getPositions(), "positions");
  int64_t count = lastSize(getFrequencies().getType(), 1, true);
  check.vector(getFrequencies(), "frequencies", std::max<int64_t>(count, 1));
  if (!check.failed())
    check.rows(resultType(*this, getInto()), "result", 2 * count);
  return check.result();
}

LogicalResult MapOp::verify() {
  Checker check(*this);
  check.oneForm(getInto(), 1);
  if (check.failed())
    return check.result();
  int64_t width = lastSize(resultType(*this, getInto()), 2, true);
  int64_t from = lastSize(getLhs().getType(), 2, true);
  check.rows(resultType(*this, getInto()), "result", std::max<int64_t>(width, 1));
  check.rows(getLhs(), "left operand", std::max<int64_t>(from, 1));
  if (getRhs())
    check.rows(getRhs(), "right operand", width);
  check.require(int64_t(getLhsFirst()) >= 0 && int64_t(getLhsFirst()) <= from - width,
                "reads columns that its left operand doesn't have");
  bool needsTwo = getKind() == MapKind::Add || getKind() == MapKind::Mul;
  bool takesOne = getKind() == MapKind::Scale || getKind() == MapKind::SoftCap;
  check.require(getRhs() ? !takesOne : !needsTwo, "has the wrong count of operands for its kind");
  return check.result();
}

LogicalResult NormOp::verify() {
  Checker check(*this);
  check.oneForm(getInto(), 1);
  if (check.failed())
    return check.result();
  int64_t width = lastSize(resultType(*this, getInto()), 2, true), over = getOver();
  check.require(over > 0 && width > 0 && width % over == 0, "can't cut its rows into such runs");
  check.rows(getInput(), "input", width);
  check.vector(getScale(), "scale", over);
  if (getResidual())
    check.rows(getResidual(), "residual", width);
  return check.result();
}

LogicalResult RopeOp::verify() {
  Checker check(*this);
  check.oneForm(getInto(), 1);
  if (check.failed())
    return check.result();
  int64_t width = lastSize(resultType(*this, getInto()), 2, true), dim = getHeadDim();
  int64_t rotary = lastSize(getTable().getType(), 2, true);
  check.rows(getInput(), "input", width);
  check.rows(getTable(), "table", std::max<int64_t>(rotary, 1));
  check.require(dim > 0 && width % dim == 0, "can't cut its rows into heads");
  check.require(getStyle() != RopeStyle::None && rotary % 2 == 0 && rotary <= dim,
                "can only turn an even number of a head's values");
  return check.result();
}

LogicalResult HadamardOp::verify() {
  Checker check(*this);
  check.oneForm(getInto(), 1);
  if (check.failed())
    return check.result();
  int64_t width = lastSize(resultType(*this, getInto()), 2, true), dim = getHeadDim();
  check.rows(getInput(), "input", width);
  check.require(dim > 0 && dim % KvLayout::kBlock == 0 && width % dim == 0,
                "can't cut its rows into heads, or those into blocks of 32");
  return check.result();
}

LogicalResult AppendOp::verify() {
  Checker check(*this);
  check.oneForm(getInto(), 1);
  if (check.failed())
    return check.result();
  auto cache = check.as<KvType>(resultType(*this, getInto()), "cache");
  check.require(bool(getCache()) != bool(getInto()) &&
                    (!getCache() || getCache().getType() == cache),
                "takes the cache it returns, or writes to one");
  if (check.failed())
    return check.result();
  check.rows(getKeys(), "keys", cache.getHeads() * cache.getDim());
  check.rows(getValues(), "values", cache.getHeads() * cache.getValueDim());
  check.numbers(getSlots(), "slots");
  return check.result();
}

LogicalResult ShortConvOp::verify() {
  Checker check(*this);
  check.oneForm(getInto(), 2);
  auto state = check.as<SlotsType>(getState().getType(), "state");
  if (check.failed())
    return check.result();
  int64_t width = lastSize(getInput().getType(), 2, true);
  int64_t count = lastSize(getWeight().getType(), 1, true);
  check.require(width > 0 && count > width && count % width == 0,
                "needs two or more weights for each column");
  check.rows(resultType(*this, getInto()), "result", width);
  check.numbers(getSequences(), "sequences");
  check.require(state.getCount() == count - width, "keeps too many or too few rows");
  return check.result();
}

LogicalResult DeltaRuleOp::verify() {
  Checker check(*this);
  check.oneForm(getInto(), 2);
  auto state = check.as<SlotsType>(getState().getType(), "state");
  if (check.failed())
    return check.result();
  int64_t heads = lastSize(getDecay().getType(), 2, true), keyHeads = getKeyHeads();
  int64_t keys = getKeyDim(), values = getValueDim();
  check.require(heads > 0 && keyHeads > 0 && heads % keyHeads == 0 && keys > 0 && values > 0,
                "can't share its key heads among its heads");
  check.rows(getMixed(), "queries, keys and values", 2 * keyHeads * keys + heads * values);
  check.rows(getBeta(), "beta", heads);
  check.vector(getRate(), "rate", heads);
  check.vector(getBias(), "bias", heads);
  check.numbers(getSequences(), "sequences");
  check.rows(resultType(*this, getInto()), "result", heads * values);
  check.require(state.getCount() == heads * keys * values, "has a memory of another size");
  return check.result();
}

LogicalResult QuantizeOp::verify() {
  Checker check(*this);
  check.oneForm(getInto(), 1);
  if (check.failed())
    return check.result();
  auto act = check.as<ActType>(resultType(*this, getInto()), "result");
  if (!act)
    return check.result();
  // Rows without routes may hold the runs of several records.
  int64_t runs = getIndices() ? 1 : int64_t(getPerToken());
  if (lastSize(getInput().getType(), 2, true) != runs * act.getWidth())
    check.rows(getInput(), "input", act.getWidth());
  check.vector(getNorm(), "norm", act.getWidth());
  check.require(int64_t(getPerToken()) >= 1, "makes at least one row of each");
  if (auto routes =
          getIndices() ? llvm::dyn_cast<RoutesType>(getIndices().getType()) : RoutesType()) {
    check.require(getRowSet() == RowSet::Tokens && int64_t(getPerToken()) == routes.getChosen(),
                  "makes a row of each pair, so its row set must be tokens and per_token the "
                  "experts chosen");
  } else if (getIndices()) {
    check.numbers(getIndices(), "indices");
    check.require(getRowSet() == RowSet::Outputs, "selects rows, so its row set must be outputs");
  }
  return check.result();
}

LogicalResult MatmulOp::verify() {
  Checker check(*this);
  check.oneForm(getInto(), 1);
  auto act = check.as<ActType>(getAct().getType(), "activations");
  if (!act || check.failed())
    return check.result();
  check.require(!getWeights().empty(), "needs at least one matrix");
  int64_t width = check.matrices(act, getWeights(), getBiases());
  if (check.failed())
    return check.result();
  if (isGated(getEpilogue())) {
    auto rows = [&](size_t i) {
      return llvm::cast<WeightType>(getWeights()[i].getType()).getRows();
    };
    check.require(getWeights().size() == 2 && rows(0) == rows(1),
                  "needs gate and up of equal shape for its epilogue");
    width /= 2;
  }
  check.rows(resultType(*this, getInto()), "result", width);
  check.residual(getResidual(), getEpilogue(), getInto(), width);
  return check.result();
}

LogicalResult MatmulHeadsOp::verify() {
  Checker check(*this);
  check.oneForm(getQueries(), 2);
  auto act = check.as<ActType>(getAct().getType(), "activations");
  auto cache = check.as<KvType>(getCache().getType(), "cache");
  if (!act || !cache || check.failed())
    return check.result();
  check.require(getWeights().size() == 3, "needs three matrices, for queries, keys and values");
  check.matrices(act, getWeights(), getBiases());
  if (check.failed())
    return check.result();
  auto rows = [&](size_t i) { return llvm::cast<WeightType>(getWeights()[i].getType()).getRows(); };
  int64_t dim = getHeadDim(), kv = cache.getHeads() * cache.getDim();
  check.require(dim == cache.getDim() && dim == cache.getValueDim() && rows(1) == kv &&
                    rows(2) == kv,
                "makes keys and values that don't fit into its cache");
  check.require(dim > 0 && rows(0) % dim == 0, "can't cut its queries into heads");
  if (check.failed())
    return check.result();
  check.rows(resultType(*this, getQueries()), "queries", rows(0));
  check.vector(getQNorm(), "q_norm", dim);
  check.vector(getKNorm(), "k_norm", dim);
  check.numbers(getSlots(), "slots");
  int64_t rotary = getRotary();
  check.require(bool(getTable()) == (getRope() != RopeStyle::None),
                "has a table exactly if its heads are turned");
  if (getTable()) {
    check.require(rotary >= 2 && rotary % 2 == 0 && rotary <= dim,
                  "can only turn an even number of a head's values");
    check.rows(getTable(), "table", rotary);
  }
  return check.result();
}

static void checkPartials(Checker &check, Type type, KvType cache, int64_t heads) {
  check.rows(type, "partials", heads * KvLayout(cache).partialBytes() / 4);
}

LogicalResult AttentionOp::verify() {
  Checker check(*this);
  check.oneForm(getInto(), getParts() ? 2 : 1);
  auto cache = check.as<KvType>(getCache().getType(), "cache");
  if (!cache || check.failed())
    return check.result();
  check.numbers(getTiles(), "tiles");
  check.numbers(getPages(), "pages");
  int64_t heads = getHeads(), tile = getTile();
  check.require(
      heads > 0 && cache.getHeads() > 0 && heads % cache.getHeads() == 0 && tile > 0,
      "needs as many query heads as key heads, or a multiple, and tiles of at least one row");
  check.rows(getQueries(), "queries", heads * cache.getDim());
  check.vector(getSinks(), "sinks", heads);
  check.require(int64_t(getWindow()) >= 0 && getSoftcap().convertToFloat() >= 0,
                "needs a window and a softcap that are not negative");
  check.require(bool(getPartials()) == (getParts() && getInto()),
                "has a place for partials exactly if it is a buffer form with parts");
  if (check.failed())
    return check.result();
  check.rows(resultType(*this, getInto()), "result", heads * cache.getValueDim());
  if (getParts()) {
    check.numbers(getParts(), "parts");
    checkPartials(check, getPartials() ? getPartials().getType() : getResult(1).getType(), cache,
                  heads);
  }
  return check.result();
}

LogicalResult MergeOp::verify() {
  Checker check(*this);
  check.oneForm(getInto(), 1);
  auto cache = check.as<KvType>(getCache().getType(), "cache");
  if (!cache || check.failed())
    return check.result();
  int64_t heads = getHeads();
  check.require(heads > 0 && int64_t(getWindow()) >= 0,
                "needs heads, and a window that is not negative");
  check.require(bool(getRows()) == !getInto(), "has rows exactly if it is a tensor form");
  if (check.failed())
    return check.result();
  check.numbers(getMerges(), "merges");
  check.vector(getSinks(), "sinks", heads);
  checkPartials(check, getPartials().getType(), cache, heads);
  if (getRows())
    check.rows(getRows(), "rows", heads * cache.getValueDim());
  check.rows(resultType(*this, getInto()), "result", heads * cache.getValueDim());
  return check.result();
}

LogicalResult RouteOp::verify() {
  Checker check(*this);
  check.oneForm(getInto(), 1);
  if (check.failed())
    return check.result();
  auto routes = check.as<RoutesType>(resultType(*this, getInto()), "result");
  if (!routes)
    return check.result();
  int64_t experts = routes.getExperts(), groups = getGroups(), best = getGroupBest();
  int64_t chosen = getGroupChosen();
  check.rows(getRatings(), "ratings", experts);
  check.vector(getBias(), "bias", experts);
  check.require(routes.getChosen() >= 1 && groups >= 1 && experts % groups == 0 && chosen >= 1 &&
                    chosen <= groups && best >= 1 &&
                    best <= std::min<int64_t>(2, experts / groups) &&
                    routes.getChosen() <= chosen * (experts / groups),
                "can't choose so many experts from such groups");
  return check.result();
}

LogicalResult ExpertGateOp::verify() {
  Checker check(*this);
  check.oneForm(getInto(), 1);
  auto act = check.as<ActType>(getAct().getType(), "activations");
  auto routes = check.as<RoutesType>(getRoutes().getType(), "routes");
  if (!act || !routes || check.failed())
    return check.result();
  check.require(getWeights().size() == 2, "needs two stacks of matrices, gate and up");
  int64_t rows = check.matrices(act, getWeights(), getBiases(), routes.getExperts());
  if (check.failed())
    return check.result();
  auto gate = llvm::cast<WeightType>(getWeights()[0].getType());
  check.require(2 * gate.getRows() == rows, "needs gate and up of equal shape");
  check.rows(resultType(*this, getInto()), "result", gate.getRows());
  return check.result();
}

LogicalResult ExpertSumOp::verify() {
  Checker check(*this);
  check.oneForm(getInto(), 1);
  auto act = check.as<ActType>(getAct().getType(), "activations");
  auto routes = check.as<RoutesType>(getRoutes().getType(), "routes");
  if (!act || !routes || check.failed())
    return check.result();
  llvm::SmallVector<Value, 1> biases;
  if (getBias())
    biases.push_back(getBias());
  int64_t rows = check.matrices(act, getWeight(), biases, routes.getExperts());
  check.require(getEpilogue() == Epilogue::Store || getEpilogue() == Epilogue::Add,
                "can only store its sums or add them");
  if (check.failed())
    return check.result();
  check.rows(resultType(*this, getInto()), "result", rows);
  check.residual(getResidual(), getEpilogue(), getInto(), rows);
  return check.result();
}

LogicalResult HeadMatmulOp::verify() {
  Checker check(*this);
  check.oneForm(getInto(), 1);
  auto act = check.as<ActType>(getAct().getType(), "activations");
  auto weight = check.as<WeightType>(getWeight().getType(), "matrix");
  if (!act || !weight || check.failed())
    return check.result();
  check.matrices(act, getWeight(), {}, weight.getCount());
  if (!check.failed())
    check.rows(resultType(*this, getInto()), "result", weight.getCount() * weight.getRows());
  return check.result();
}

LogicalResult JoinOp::verify() {
  Checker check(*this);
  check.oneForm(getInto(), 1);
  int64_t lhs = lastSize(getLhs().getType(), 2, true), rhs = lastSize(getRhs().getType(), 2, true);
  int64_t heads = getHeads();
  check.require(heads >= 1 && lhs > 0 && rhs > 0 && lhs % heads == 0 && rhs % heads == 0,
                "can't cut its rows into so many heads");
  if (!check.failed())
    check.rows(resultType(*this, getInto()), "result", lhs + rhs);
  return check.result();
}

LogicalResult ScaleRowsOp::verify() {
  Checker check(*this);
  check.oneForm(getInto(), 1);
  check.rows(getFactors(), "factors", 1);
  int64_t width = lastSize(getInput().getType(), 2, true);
  check.rows(getInput(), "input", std::max<int64_t>(width, 1));
  if (!check.failed())
    check.rows(resultType(*this, getInto()), "result", width);
  return check.result();
}

} // namespace izhc::pack
