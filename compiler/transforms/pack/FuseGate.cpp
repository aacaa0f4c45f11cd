// Makes lm.mul(lm.silu(gate), up), or lm.gelu instead, the epilogue of the two products together.

#include "compiler/transforms/pack/Biases.h"
#include "compiler/transforms/pack/Passes.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace izhc {

#define GEN_PASS_DEF_FUSEGATE
#include "compiler/transforms/pack/Passes.h.inc"

namespace {

// The plain product of one matrix that only one op reads, or null.
pack::MatmulOp plainProduct(mlir::Value value) {
  auto op = value.getDefiningOp<pack::MatmulOp>();
  if (!op || op.getEpilogue() != pack::Epilogue::Store || op.getWeights().size() != 1 ||
      !op->hasOneUse())
    return {};
  return op;
}

struct Fuse : mlir::OpRewritePattern<lm::MulOp> {
  using OpRewritePattern::OpRewritePattern;

  llvm::LogicalResult matchAndRewrite(lm::MulOp op,
                                      mlir::PatternRewriter &rewriter) const override {
    mlir::Value other = op.getRhs();
    mlir::Operation *bent = op.getLhs().getDefiningOp();
    if (!llvm::isa_and_nonnull<lm::SiluOp, lm::GeluOp>(bent)) {
      bent = op.getRhs().getDefiningOp();
      other = op.getLhs();
    }
    if (!llvm::isa_and_nonnull<lm::SiluOp, lm::GeluOp>(bent) || !bent->hasOneUse())
      return rewriter.notifyMatchFailure(op, "no factor is a silu or gelu of its own");
    pack::MatmulOp gate = plainProduct(bent->getOperand(0)), up = plainProduct(other);
    if (!gate || !up)
      return rewriter.notifyMatchFailure(op, "gate or up is no plain product of its own");
    if (gate.getAct() != up.getAct())
      return rewriter.notifyMatchFailure(op, "gate and up read different activations");
    llvm::SmallVector<mlir::Value> weights{gate.getWeights()[0], up.getWeights()[0]};
    llvm::SmallVector<mlir::Value> biases = joinBiases(rewriter, {gate, up});
    rewriter.replaceOpWithNewOp<pack::MatmulOp>(
        op, op.getType(), gate.getAct(), weights, biases, mlir::Value(),
        pack::EpilogueAttr::get(getContext(), llvm::isa<lm::SiluOp>(bent)
                                                  ? pack::Epilogue::SiluGate
                                                  : pack::Epilogue::GeluGate),
        gate.getScaleAttr(), gate.getRowSetAttr(), mlir::Value());
    rewriter.eraseOp(bent);
    rewriter.eraseOp(gate);
    rewriter.eraseOp(up);
    return mlir::success();
  }
};

struct FuseGate : impl::FuseGateBase<FuseGate> {
  void runOnOperation() override {
    mlir::RewritePatternSet patterns(&getContext());
    patterns.add<Fuse>(&getContext());
    if (failed(mlir::applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
} // namespace izhc
