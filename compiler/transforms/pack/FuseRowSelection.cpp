// Makes lm.select_rows the `indices` of the pack.quantize that reads it.

#include "compiler/transforms/pack/Passes.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace izhc {

#define GEN_PASS_DEF_FUSEROWSELECTION
#include "compiler/transforms/pack/Passes.h.inc"

namespace {

struct FuseSelection : mlir::OpRewritePattern<pack::QuantizeOp> {
  using OpRewritePattern::OpRewritePattern;

  llvm::LogicalResult matchAndRewrite(pack::QuantizeOp op,
                                      mlir::PatternRewriter &rewriter) const override {
    auto select = op.getInput().getDefiningOp<lm::SelectRowsOp>();
    if (!select)
      return rewriter.notifyMatchFailure(op, "input is no selection");
    if (op.getIndices())
      return rewriter.notifyMatchFailure(op, "has a selection already");
    rewriter.modifyOpInPlace(op, [&] {
      op.getInputMutable().assign(select.getInput());
      op.getIndicesMutable().assign(select.getRows());
      op.setRowSet(pack::RowSet::Outputs);
    });
    if (select->use_empty())
      rewriter.eraseOp(select);
    return mlir::success();
  }
};

struct FuseRowSelection : impl::FuseRowSelectionBase<FuseRowSelection> {
  void runOnOperation() override {
    mlir::RewritePatternSet patterns(&getContext());
    patterns.add<FuseSelection>(&getContext());
    if (failed(mlir::applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
} // namespace izhc
