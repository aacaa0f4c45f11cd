// Finds the chains: a dot continues the one before if nothing else reads that
// one's sum and both have codes of the same range.

#include "compiler/target/vector/DotChains.h"

namespace izhc {

using namespace mlir;

static bool continuesChain(pack::DotOp dot) {
  auto before = dot.getAcc().getDefiningOp<pack::DotOp>();
  return before && before->hasOneUse() && before->getBlock() == dot->getBlock() &&
         before.getMax() == dot.getMax() && before.getSignedCodes() == dot.getSignedCodes();
}

void replaceDotChains(
    ModuleOp module,
    llvm::function_ref<Value(KernelBuilder &, llvm::MutableArrayRef<pack::DotOp>)> lower) {
  llvm::SmallVector<pack::DotOp> heads;
  module.walk([&](pack::DotOp dot) {
    if (!continuesChain(dot))
      heads.push_back(dot);
  });
  for (pack::DotOp head : heads) {
    llvm::SmallVector<pack::DotOp> chain{head};
    while (chain.back()->hasOneUse()) {
      auto next = dyn_cast<pack::DotOp>(*chain.back()->user_begin());
      if (!next || next.getAcc() != chain.back().getResult() || !continuesChain(next))
        break;
      chain.push_back(next);
    }
    OpBuilder builder(head);
    KernelBuilder k(builder, head.getLoc(), {});
    Value sum = lower(k, chain);
    chain.back().getResult().replaceAllUsesWith(sum);
    for (pack::DotOp dot : llvm::reverse(chain))
      dot->erase();
  }
}

} // namespace izhc
