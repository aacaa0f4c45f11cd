// Replaces quantizations of the same rows by one that serves all readers.

#include "compiler/transforms/pack/ActTypes.h"
#include "compiler/transforms/pack/Passes.h"
#include "mlir/IR/Dominance.h"

namespace izhc {

#define GEN_PASS_DEF_SHAREQUANTIZE
#include "compiler/transforms/pack/Passes.h.inc"

namespace {

pack::ActType typeOf(pack::QuantizeOp op) {
  return llvm::dyn_cast<pack::ActType>(op.getResult().getType());
}

// True if both make the same codes from the same rows.
bool sameCodes(pack::QuantizeOp a, pack::QuantizeOp b) {
  return a->getBlock() == b->getBlock() && a.getInput() == b.getInput() &&
         a.getNorm() == b.getNorm() && a.getIndices() == b.getIndices() &&
         a.getEpsAttr() == b.getEpsAttr() && a.getRowSet() == b.getRowSet() &&
         a.getPerToken() == b.getPerToken() && typeOf(a).getKind() == typeOf(b).getKind() &&
         typeOf(a).getWidth() == typeOf(b).getWidth();
}

struct ShareQuantize : impl::ShareQuantizeBase<ShareQuantize> {
  void runOnOperation() override {
    llvm::DenseMap<mlir::Value, llvm::SmallVector<pack::QuantizeOp, 2>> byInput;
    llvm::SmallVector<pack::QuantizeOp> extra;
    getOperation().walk([&](pack::QuantizeOp op) {
      if (op.getInto() || !op.getResult() || !typeOf(op))
        return;
      auto &earlier = byInput[op.getInput()];
      auto *same =
          llvm::find_if(earlier, [&](pack::QuantizeOp other) { return sameCodes(other, op); });
      if (same == earlier.end()) {
        earlier.push_back(op);
        return;
      }
      // The walk meets ops in order, so the earlier one dominates this one.
      same->getResult().setType(mergeActTypes(typeOf(*same), typeOf(op)));
      op.getResult().replaceAllUsesWith(same->getResult());
      extra.push_back(op);
    });
    for (pack::QuantizeOp op : extra)
      op.erase();
  }
};

} // namespace
} // namespace izhc
