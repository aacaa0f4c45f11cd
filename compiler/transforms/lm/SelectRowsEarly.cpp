// Moves lm.select_rows ahead of row-wise ops. Leaves alone ops with several
// row operands: each would need a selection of its own.

#include "compiler/transforms/lm/Passes.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace izhc {

#define GEN_PASS_DEF_SELECTROWSEARLY
#include "compiler/transforms/lm/Passes.h.inc"

namespace {

// True if row i of the result depends on row i of operand 0 and on no other.
bool isRowWise(mlir::Operation *op) {
  return llvm::isa<lm::RmsNormOp, lm::LinearOp, lm::SiluOp, lm::GeluOp, lm::SigmoidOp,
                   lm::SoftCapOp, lm::SliceOp, lm::ScaleOp>(op);
}

struct MoveUp : mlir::OpRewritePattern<lm::SelectRowsOp> {
  using OpRewritePattern::OpRewritePattern;

  llvm::LogicalResult matchAndRewrite(lm::SelectRowsOp op,
                                      mlir::PatternRewriter &rewriter) const override {
    mlir::Operation *source = op.getInput().getDefiningOp();
    if (!source || !isRowWise(source))
      return rewriter.notifyMatchFailure(op, "the rows are not made one by one");
    // Saves little, and where nothing more can be passed no op would take the
    // selection in.
    if (llvm::isa<lm::ScaleOp>(source)) {
      mlir::Operation *before = source->getOperand(0).getDefiningOp();
      if (!before || !isRowWise(before))
        return rewriter.notifyMatchFailure(op, "a scale of rows that are not made one by one");
    }
    // All rows are wanted elsewhere, so selecting early would add work.
    if (source->getNumResults() != 1 || !source->hasOneUse())
      return rewriter.notifyMatchFailure(op, "the rows have other readers");
    rewriter.setInsertionPoint(op);
    mlir::Value input = source->getOperand(0);
    mlir::Value selected =
        lm::SelectRowsOp::create(rewriter, op.getLoc(), input.getType(), input, op.getRows());
    mlir::Operation *moved = rewriter.clone(*source);
    rewriter.modifyOpInPlace(moved, [&] { moved->setOperand(0, selected); });
    rewriter.replaceOp(op, moved->getResults());
    rewriter.eraseOp(source);
    return mlir::success();
  }
};

struct SelectRowsEarly : impl::SelectRowsEarlyBase<SelectRowsEarly> {
  void runOnOperation() override {
    mlir::RewritePatternSet patterns(&getContext());
    patterns.add<MoveUp>(&getContext());
    if (failed(mlir::applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
} // namespace izhc
