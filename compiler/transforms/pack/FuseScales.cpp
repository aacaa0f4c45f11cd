// Makes lm.scale and lm.soft_cap a part of the op whose result they change.

#include "compiler/transforms/pack/Passes.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace izhc {

#define GEN_PASS_DEF_FUSESCALES
#include "compiler/transforms/pack/Passes.h.inc"

namespace {

// The product that only one op reads and that stores what it computes, or null.
pack::MatmulOp storedProduct(mlir::Value value) {
  auto op = value.getDefiningOp<pack::MatmulOp>();
  if (!op || op.getEpilogue() != pack::Epilogue::Store || !op->hasOneUse())
    return {};
  return op;
}

struct ScaleProduct : mlir::OpRewritePattern<lm::ScaleOp> {
  using OpRewritePattern::OpRewritePattern;

  llvm::LogicalResult matchAndRewrite(lm::ScaleOp op,
                                      mlir::PatternRewriter &rewriter) const override {
    pack::MatmulOp product = storedProduct(op.getInput());
    // Two factors would round differently from one.
    if (!product || product.getScale().convertToFloat() != 1.0f)
      return rewriter.notifyMatchFailure(op, "no unscaled product of its own");
    rewriter.modifyOpInPlace(product, [&] { product.setScaleAttr(op.getFactorAttr()); });
    rewriter.replaceOp(op, product);
    return mlir::success();
  }
};

struct ScaleEmbedding : mlir::OpRewritePattern<lm::ScaleOp> {
  using OpRewritePattern::OpRewritePattern;

  llvm::LogicalResult matchAndRewrite(lm::ScaleOp op,
                                      mlir::PatternRewriter &rewriter) const override {
    auto embed = op.getInput().getDefiningOp<pack::EmbedOp>();
    if (!embed || !embed->hasOneUse() || embed.getScale().convertToFloat() != 1.0f)
      return rewriter.notifyMatchFailure(op, "no unscaled embedding of its own");
    rewriter.modifyOpInPlace(embed, [&] { embed.setScaleAttr(op.getFactorAttr()); });
    rewriter.replaceOp(op, embed);
    return mlir::success();
  }
};

struct CapProduct : mlir::OpRewritePattern<lm::SoftCapOp> {
  using OpRewritePattern::OpRewritePattern;

  llvm::LogicalResult matchAndRewrite(lm::SoftCapOp op,
                                      mlir::PatternRewriter &rewriter) const override {
    pack::MatmulOp product = storedProduct(op.getInput());
    if (!product || product.getScale().convertToFloat() != 1.0f)
      return rewriter.notifyMatchFailure(op, "no unscaled product of its own");
    rewriter.modifyOpInPlace(product, [&] {
      product.setEpilogue(pack::Epilogue::SoftCap);
      product.setScaleAttr(op.getCapAttr());
    });
    rewriter.replaceOp(op, product);
    return mlir::success();
  }
};

struct FuseScales : impl::FuseScalesBase<FuseScales> {
  void runOnOperation() override {
    mlir::RewritePatternSet patterns(&getContext());
    patterns.add<ScaleProduct, ScaleEmbedding, CapProduct>(&getContext());
    if (failed(mlir::applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
} // namespace izhc
