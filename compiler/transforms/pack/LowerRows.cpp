// One pattern an op: `lm` ops on rows that the fusions left become `pack` ops.
// Runs last, so whatever has no pattern here has no kernel at all.

#include "compiler/transforms/pack/Attention.h"
#include "compiler/transforms/pack/Passes.h"
#include "compiler/transforms/pack/RowSets.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace izhc {

#define GEN_PASS_DEF_LOWERROWS
#include "compiler/transforms/pack/Passes.h.inc"

namespace {

using llvm::LogicalResult;
using mlir::OpRewritePattern;
using mlir::PatternRewriter;
using mlir::Value;
using pack::MapKind;

// True if an op of one of these kinds is the only reader and takes it in.
template <typename... Ops> bool goesInto(Value value) {
  return value.hasOneUse() && llvm::isa<Ops...>(*value.getUsers().begin());
}

struct Map {
  MapKind kind;
  float factor = 1.0f;
  int64_t first = 0;
};

void replaceByMap(PatternRewriter &rewriter, mlir::Operation *op, Value lhs, Value rhs, Map map) {
  pack::RowSet rows = rowSetOf(lhs);
  rewriter.replaceOpWithNewOp<pack::MapOp>(op, op->getResult(0).getType(), lhs, rhs, map.kind,
                                           llvm::APFloat(map.factor), uint64_t(map.first), rows,
                                           Value());
}

// The function of a value that a multiplication can take in.
std::optional<MapKind> bend(mlir::Operation *op) {
  if (llvm::isa_and_nonnull<lm::SiluOp>(op))
    return MapKind::Silu;
  if (llvm::isa_and_nonnull<lm::GeluOp>(op))
    return MapKind::Gelu;
  if (llvm::isa_and_nonnull<lm::SigmoidOp>(op))
    return MapKind::Sigmoid;
  return std::nullopt;
}

template <typename Op> struct LowerBend : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;

  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    if (goesInto<lm::MulOp>(op.getResult()))
      return rewriter.notifyMatchFailure(op, "the multiplication takes it in");
    replaceByMap(rewriter, op, op.getInput(), Value(), {*bend(op)});
    return mlir::success();
  }
};

struct LowerMul : OpRewritePattern<lm::MulOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(lm::MulOp op, PatternRewriter &rewriter) const override {
    for (auto [one, other] : {std::pair(op.getLhs(), op.getRhs()), {op.getRhs(), op.getLhs()}}) {
      mlir::Operation *source = one.getDefiningOp();
      auto kind = bend(source);
      if (!kind || !source->hasOneUse())
        continue;
      replaceByMap(rewriter, op, source->getOperand(0), other, {*kind});
      rewriter.eraseOp(source);
      return mlir::success();
    }
    replaceByMap(rewriter, op, op.getLhs(), op.getRhs(), {MapKind::Mul});
    return mlir::success();
  }
};

struct LowerScale : OpRewritePattern<lm::ScaleOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(lm::ScaleOp op, PatternRewriter &rewriter) const override {
    if (goesInto<lm::AddOp>(op.getResult()))
      return rewriter.notifyMatchFailure(op, "the addition takes it in");
    replaceByMap(rewriter, op, op.getInput(), Value(),
                 {MapKind::Scale, op.getFactor().convertToFloat()});
    return mlir::success();
  }
};

struct LowerSoftCap : OpRewritePattern<lm::SoftCapOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(lm::SoftCapOp op, PatternRewriter &rewriter) const override {
    replaceByMap(rewriter, op, op.getInput(), Value(),
                 {MapKind::SoftCap, op.getCap().convertToFloat()});
    return mlir::success();
  }
};

struct LowerSlice : OpRewritePattern<lm::SliceOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(lm::SliceOp op, PatternRewriter &rewriter) const override {
    replaceByMap(rewriter, op, op.getInput(), Value(),
                 {MapKind::Scale, 1.0f, int64_t(op.getFirst())});
    return mlir::success();
  }
};

void replaceByNorm(PatternRewriter &rewriter, mlir::Operation *op, lm::RmsNormOp norm,
                   Value residual, llvm::APFloat factor) {
  pack::RowSet rows = rowSetOf(norm.getInput());
  rewriter.replaceOpWithNewOp<pack::NormOp>(op, op->getResult(0).getType(), norm.getInput(),
                                            norm.getScale(), residual, norm.getOver(),
                                            norm.getEps(), factor, rows, Value());
}

struct LowerNorm : OpRewritePattern<lm::RmsNormOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(lm::RmsNormOp op, PatternRewriter &rewriter) const override {
    if (goesInto<lm::AddOp, lm::ScaleOp>(op.getResult()))
      return rewriter.notifyMatchFailure(op, "the addition takes it in, or the scale");
    replaceByNorm(rewriter, op, op, Value(), llvm::APFloat(1.0f));
    return mlir::success();
  }
};

// A norm, perhaps scaled, of its own.
struct ScaledNorm {
  lm::RmsNormOp norm;
  lm::ScaleOp scale;
  llvm::APFloat factor() { return scale ? scale.getFactor() : llvm::APFloat(1.0f); }
};

ScaledNorm scaledNorm(Value value) {
  ScaledNorm found;
  if (value.hasOneUse())
    found.scale = value.getDefiningOp<lm::ScaleOp>();
  if (found.scale)
    value = found.scale.getInput();
  if (value.hasOneUse())
    found.norm = value.getDefiningOp<lm::RmsNormOp>();
  return found;
}

struct LowerScaledNorm : OpRewritePattern<lm::ScaleOp> {
  LowerScaledNorm(mlir::MLIRContext *context) : OpRewritePattern(context, /*benefit=*/2) {}

  LogicalResult matchAndRewrite(lm::ScaleOp op, PatternRewriter &rewriter) const override {
    auto norm = op.getInput().getDefiningOp<lm::RmsNormOp>();
    if (!norm || !norm->hasOneUse() || goesInto<lm::AddOp>(op.getResult()))
      return rewriter.notifyMatchFailure(op, "no norm of its own, or the addition takes it in");
    replaceByNorm(rewriter, op, norm, Value(), op.getFactor());
    rewriter.eraseOp(norm);
    return mlir::success();
  }
};

struct LowerAdd : OpRewritePattern<lm::AddOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(lm::AddOp op, PatternRewriter &rewriter) const override {
    for (auto [one, other] : {std::pair(op.getRhs(), op.getLhs()), {op.getLhs(), op.getRhs()}}) {
      ScaledNorm found = scaledNorm(one);
      if (!found.norm)
        continue;
      replaceByNorm(rewriter, op, found.norm, other, found.factor());
      if (found.scale)
        rewriter.eraseOp(found.scale);
      rewriter.eraseOp(found.norm);
      return mlir::success();
    }
    for (auto [one, other] : {std::pair(op.getRhs(), op.getLhs()), {op.getLhs(), op.getRhs()}}) {
      auto scale = one.getDefiningOp<lm::ScaleOp>();
      if (!scale || !scale->hasOneUse())
        continue;
      replaceByMap(rewriter, op, scale.getInput(), other,
                   {MapKind::Add, scale.getFactor().convertToFloat()});
      rewriter.eraseOp(scale);
      return mlir::success();
    }
    replaceByMap(rewriter, op, op.getLhs(), op.getRhs(), {MapKind::Add});
    return mlir::success();
  }
};

struct LowerRope : OpRewritePattern<lm::RopeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(lm::RopeOp op, PatternRewriter &rewriter) const override {
    auto style =
        op.getStyle() == lm::RopeStyle::Halves ? pack::RopeStyle::Halves : pack::RopeStyle::Pairs;
    rewriter.replaceOpWithNewOp<pack::RopeOp>(op, op.getType(), op.getInput(), op.getAngles(),
                                              op.getHeadDim(), style, Value());
    return mlir::success();
  }
};

struct LowerScaleRows : OpRewritePattern<lm::ScaleRowsOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(lm::ScaleRowsOp op, PatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<pack::ScaleRowsOp>(op, op.getType(), op.getInput(), op.getFactors(),
                                                   Value());
    return mlir::success();
  }
};

struct LowerJoin : OpRewritePattern<lm::JoinOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(lm::JoinOp op, PatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<pack::JoinOp>(op, op.getType(), op.getLhs(), op.getRhs(),
                                              op.getHeadsAttr(), Value());
    return mlir::success();
  }
};

// A cache, its writers and its readers change their types together.
struct LowerState : OpRewritePattern<lm::StateOp> {
  LowerState(mlir::MLIRContext *context, int64_t bits) : OpRewritePattern(context), bits(bits) {}

  LogicalResult matchAndRewrite(lm::StateOp op, PatternRewriter &rewriter) const override {
    auto type = llvm::dyn_cast<lm::KvCacheType>(op.getType());
    if (!type)
      return rewriter.notifyMatchFailure(op, "is no cache");
    for (mlir::Operation *user : op->getUsers())
      if (!llvm::isa<lm::AppendOp>(user))
        return rewriter.notifyMatchFailure(op, "the old cache is read");
    if (!fits(type, bits))
      return rewriter.notifyMatchFailure(op, "the heads can't be cut into blocks");
    bool windowed = windowOf(op) != 0;
    CacheValues values = makeCache(rewriter, op.getLoc(), op, bits);
    for (mlir::Operation *user : llvm::make_early_inc_range(op->getUsers()))
      lowerAppend(rewriter, llvm::cast<lm::AppendOp>(user), values, windowed);
    rewriter.eraseOp(op);
    return mlir::success();
  }

  void lowerAppend(PatternRewriter &rewriter, lm::AppendOp op, CacheValues values,
                   bool windowed) const {
    mlir::OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPoint(op);
    auto append =
        pack::AppendOp::create(rewriter, op.getLoc(), values.cache.getType(), op.getKeys(),
                               op.getValues(), values.slots, values.cache, Value());
    for (mlir::Operation *user : llvm::make_early_inc_range(op->getUsers()))
      if (auto attention = llvm::dyn_cast<lm::AttentionOp>(user))
        replaceAttention(rewriter, attention, attention.getQueries(), /*turned=*/false,
                         append.getResult(), windowed, /*exact=*/true);
    rewriter.eraseOp(op);
  }

  int64_t bits;
};

// The slots that take the place of a state that nothing else reads, or null.
Value slotsOf(PatternRewriter &rewriter, Value state, int64_t count) {
  auto op = state.getDefiningOp<lm::StateOp>();
  if (!op || !op->hasOneUse())
    return {};
  auto type = pack::SlotsType::get(op.getContext(), count);
  return pack::PackStateOp::create(rewriter, op.getLoc(), type, op.getNameAttr());
}

struct LowerShortConv : OpRewritePattern<lm::ShortConvOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(lm::ShortConvOp op, PatternRewriter &rewriter) const override {
    lm::RowStateType type = op.getState().getType();
    Value slots = slotsOf(rewriter, op.getState(), type.getWidth() * type.getRows());
    if (!slots || !op.getNext().use_empty())
      return rewriter.notifyMatchFailure(op, "the state has other readers");
    Value sequences = stepInput(rewriter, op.getLoc(), pack::StepInput::Sequences);
    auto conv = pack::ShortConvOp::create(
        rewriter, op.getLoc(), mlir::TypeRange{op.getResult().getType(), slots.getType()},
        op.getInput(), op.getWeight(), sequences, slots, Value(), op.getSiluAttr());
    rewriter.replaceAllUsesWith(op.getResult(), conv.getResult(0));
    rewriter.eraseOp(op);
    return mlir::success();
  }
};

struct LowerDeltaRule : OpRewritePattern<lm::DeltaRuleOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(lm::DeltaRuleOp op, PatternRewriter &rewriter) const override {
    lm::DeltaStateType type = op.getState().getType();
    Value slots =
        slotsOf(rewriter, op.getState(), type.getHeads() * type.getKeys() * type.getValues());
    if (!slots || !op.getNext().use_empty())
      return rewriter.notifyMatchFailure(op, "the state has other readers");
    Value sequences = stepInput(rewriter, op.getLoc(), pack::StepInput::Sequences);
    auto rule = pack::DeltaRuleOp::create(
        rewriter, op.getLoc(), mlir::TypeRange{op.getResult().getType(), slots.getType()},
        op.getMixed(), op.getDecay(), op.getBeta(), op.getRate(), op.getBias(), sequences, slots,
        Value(), op.getKeyHeadsAttr(), rewriter.getI64IntegerAttr(type.getKeys()),
        rewriter.getI64IntegerAttr(type.getValues()), op.getEpsAttr(), op.getTiledAttr());
    rewriter.replaceAllUsesWith(op.getResult(), rule.getResult(0));
    rewriter.eraseOp(op);
    return mlir::success();
  }
};

struct LowerRows : impl::LowerRowsBase<LowerRows> {
  using LowerRowsBase::LowerRowsBase;

  void runOnOperation() override {
    bool fit = true;
    getOperation().walk([&](lm::StateOp op) {
      auto type = llvm::dyn_cast<lm::KvCacheType>(op.getType());
      // One complaint tells enough.
      if (!type || !fit)
        return;
      if (fits(type, cacheBits))
        return;
      fit = false;
      op.emitError("has heads of ")
          << type.getDim() << " and " << type.getValueDim()
          << " values, which the blocks of 32 of this type of cache don't divide: compile "
             "without --kv";
    });
    if (!fit)
      return signalPassFailure();
    mlir::RewritePatternSet patterns(&getContext());
    patterns.add<LowerBend<lm::SiluOp>, LowerBend<lm::GeluOp>, LowerBend<lm::SigmoidOp>, LowerMul,
                 LowerScale, LowerSoftCap, LowerSlice, LowerNorm, LowerScaledNorm, LowerAdd,
                 LowerRope, LowerShortConv, LowerDeltaRule, LowerJoin, LowerScaleRows>(
        &getContext());
    patterns.add<LowerState>(&getContext(), cacheBits);
    if (failed(mlir::applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
} // namespace izhc
