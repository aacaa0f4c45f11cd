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

llvm::SmallVector<DotChain> dotChains(ModuleOp module) {
  llvm::SmallVector<DotChain> chains;
  module.walk([&](pack::DotOp dot) {
    if (!continuesChain(dot))
      chains.push_back({dot});
  });
  for (DotChain &chain : chains)
    while (chain.back()->hasOneUse()) {
      auto next = dyn_cast<pack::DotOp>(*chain.back()->user_begin());
      if (!next || next.getAcc() != chain.back().getResult() || !continuesChain(next))
        break;
      chain.push_back(next);
    }
  return chains;
}

void replaceChain(DotChain &chain, Value sum) {
  chain.back().getResult().replaceAllUsesWith(sum);
  for (pack::DotOp dot : llvm::reverse(chain))
    dot->erase();
}

void replaceDotChains(
    ModuleOp module,
    llvm::function_ref<Value(KernelBuilder &, llvm::MutableArrayRef<pack::DotOp>)> lower) {
  for (DotChain &chain : dotChains(module)) {
    OpBuilder builder(chain.front());
    KernelBuilder k(builder, chain.front().getLoc(), {});
    replaceChain(chain, lower(k, chain));
  }
}

} // namespace izhc
