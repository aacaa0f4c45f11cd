// Follows a value to the op that decides it.

#include "compiler/transforms/pack/RowSets.h"
#include "dialects/lm/Lm.h"

namespace izhc {

pack::RowSet rowSetOf(mlir::Value value) {
  while (mlir::Operation *op = value.getDefiningOp()) {
    if (llvm::isa<lm::SelectRowsOp>(op))
      return pack::RowSet::Outputs;
    if (auto set = op->getAttrOfType<pack::RowSetAttr>("row_set"))
      return set.getValue();
    if (!llvm::isa<lm::RmsNormOp, lm::SiluOp, lm::GeluOp, lm::SigmoidOp, lm::SoftCapOp, lm::SliceOp,
                   lm::ScaleOp, lm::AddOp, lm::MulOp, lm::RopeOp>(op))
      break;
    value = op->getOperand(0);
  }
  return pack::RowSet::Tokens;
}

} // namespace izhc
