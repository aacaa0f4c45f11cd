// Makes lm.add the epilogue of the product that is one of its operands.

#include "compiler/transforms/pack/Passes.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace izhc {

#define GEN_PASS_DEF_FUSERESIDUALADD
#include "compiler/transforms/pack/Passes.h.inc"

namespace {

struct Product {
  pack::MatmulOp matmul;
  // Between product and addition, or null.
  lm::ScaleOp scale;
};

// `value` as a plain product, perhaps scaled, that only one op reads.
Product productOf(mlir::Value value) {
  auto scale = value.getDefiningOp<lm::ScaleOp>();
  if (scale) {
    if (!scale->hasOneUse())
      return {};
    value = scale.getInput();
  }
  auto matmul = value.getDefiningOp<pack::MatmulOp>();
  if (!matmul || matmul.getEpilogue() != pack::Epilogue::Store || !matmul->hasOneUse())
    return {};
  return {matmul, scale};
}

// The rows are overwritten in place: nobody may read them at or after `op`,
// but for `op` itself, and they must be rows that an op made.
bool diesAt(mlir::Value rows, mlir::Operation *op) {
  if (!rows.getDefiningOp())
    return false;
  return llvm::all_of(rows.getUsers(), [&](mlir::Operation *user) {
    return user == op || (user->getBlock() == op->getBlock() && user->isBeforeInBlock(op));
  });
}

struct Fuse : mlir::OpRewritePattern<lm::AddOp> {
  using OpRewritePattern::OpRewritePattern;

  llvm::LogicalResult matchAndRewrite(lm::AddOp op,
                                      mlir::PatternRewriter &rewriter) const override {
    // The right operand first: by custom it is what a layer adds.
    mlir::Value residual = op.getLhs();
    Product product = productOf(op.getRhs());
    if (!product.matmul || !diesAt(residual, op)) {
      residual = op.getRhs();
      product = productOf(op.getLhs());
    }
    if (!product.matmul)
      return rewriter.notifyMatchFailure(op, "no operand is a plain product of its own");
    if (!diesAt(residual, op))
      return rewriter.notifyMatchFailure(op, "the old rows are read later");
    pack::MatmulOp matmul = product.matmul;
    auto factor = product.scale ? product.scale.getFactorAttr() : matmul.getScaleAttr();
    rewriter.replaceOpWithNewOp<pack::MatmulOp>(
        op, op.getType(), matmul.getAct(), matmul.getWeights(), matmul.getBiases(), residual,
        pack::EpilogueAttr::get(getContext(), pack::Epilogue::Add), factor, matmul.getRowSetAttr(),
        mlir::Value());
    if (product.scale)
      rewriter.eraseOp(product.scale);
    rewriter.eraseOp(matmul);
    return mlir::success();
  }
};

// The same for sums over experts.
struct FuseExperts : mlir::OpRewritePattern<lm::AddOp> {
  using OpRewritePattern::OpRewritePattern;

  llvm::LogicalResult matchAndRewrite(lm::AddOp op,
                                      mlir::PatternRewriter &rewriter) const override {
    for (auto [residual, value] :
         {std::pair(op.getLhs(), op.getRhs()), {op.getRhs(), op.getLhs()}}) {
      auto scale = value.getDefiningOp<lm::ScaleOp>();
      mlir::Value source = scale ? scale.getInput() : value;
      auto sum = source.getDefiningOp<pack::ExpertSumOp>();
      if (!sum || sum.getEpilogue() != pack::Epilogue::Store || !sum->hasOneUse() ||
          (scale && !scale->hasOneUse()) || !diesAt(residual, op))
        continue;
      rewriter.replaceOpWithNewOp<pack::ExpertSumOp>(
          op, op.getType(), sum.getAct(), sum.getRoutes(), sum.getWeight(), sum.getBias(), residual,
          pack::EpilogueAttr::get(getContext(), pack::Epilogue::Add),
          scale ? scale.getFactorAttr() : sum.getScaleAttr(), mlir::Value());
      if (scale)
        rewriter.eraseOp(scale);
      rewriter.eraseOp(sum);
      return mlir::success();
    }
    return rewriter.notifyMatchFailure(op, "no operand is a sum over experts of its own");
  }
};

struct FuseResidualAdd : impl::FuseResidualAddBase<FuseResidualAdd> {
  void runOnOperation() override {
    mlir::RewritePatternSet patterns(&getContext());
    patterns.add<Fuse, FuseExperts>(&getContext());
    if (failed(mlir::applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
} // namespace izhc
