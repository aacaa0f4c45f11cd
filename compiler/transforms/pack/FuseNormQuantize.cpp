// Makes lm.rms_norm over whole rows a part of pack.quantize. Norms of heads
// are for FuseHeads.

#include "compiler/transforms/pack/Passes.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace izhc {

#define GEN_PASS_DEF_FUSENORMQUANTIZE
#include "compiler/transforms/pack/Passes.h.inc"

namespace {

mlir::Value makeOnes(mlir::PatternRewriter &rewriter, mlir::Location loc, int64_t count) {
  llvm::SmallVector<float> ones(count, 1.0f);
  auto type = mlir::RankedTensorType::get({count}, rewriter.getF32Type());
  return pack::PackVectorOp::create(rewriter, loc, type, ("ones." + llvm::Twine(count)).str(),
                                    rewriter.getDenseF32ArrayAttr(ones));
}

struct FuseNorm : mlir::OpRewritePattern<pack::QuantizeOp> {
  using OpRewritePattern::OpRewritePattern;

  llvm::LogicalResult matchAndRewrite(pack::QuantizeOp op,
                                      mlir::PatternRewriter &rewriter) const override {
    if (op.getNorm() ||
        (op.getIndices() && !llvm::isa<pack::RoutesType>(op.getIndices().getType())))
      return rewriter.notifyMatchFailure(op, "has a norm or a selection already");
    auto norm = op.getInput().getDefiningOp<lm::RmsNormOp>();
    if (!norm)
      return rewriter.notifyMatchFailure(op, "input is no norm");
    if (int64_t(norm.getOver()) != lm::widthOf(norm.getInput()) ||
        (!op.getIndices() && op.getPerToken() > 1))
      return rewriter.notifyMatchFailure(op, "the norm is not over whole rows");
    mlir::Value scale = norm.getScale();
    if (!scale)
      scale = makeOnes(rewriter, norm.getLoc(), norm.getOver());
    rewriter.modifyOpInPlace(op, [&] {
      op.getInputMutable().assign(norm.getInput());
      op.getNormMutable().assign(scale);
      op.setEpsAttr(norm.getEpsAttr());
    });
    if (norm->use_empty())
      rewriter.eraseOp(norm);
    return mlir::success();
  }
};

struct FuseNormQuantize : impl::FuseNormQuantizeBase<FuseNormQuantize> {
  void runOnOperation() override {
    mlir::RewritePatternSet patterns(&getContext());
    patterns.add<FuseNorm>(&getContext());
    if (failed(mlir::applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
} // namespace izhc
