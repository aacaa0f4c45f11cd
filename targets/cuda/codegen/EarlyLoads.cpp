#include "targets/cuda/codegen/EarlyLoads.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

namespace izhc::cuda {

using namespace mlir;

void loadEarly(Operation *before, Operation *after) {
  llvm::SetVector<Operation *> movable;
  llvm::DenseSet<Operation *> needed;
  SmallVector<Operation *> ops;
  for (Operation *op = after->getNextNode(); op; op = op->getNextNode())
    ops.push_back(op);
  llvm::DenseSet<Operation *> here(ops.begin(), ops.end());
  auto isHere = [&](Value value) { return here.contains(value.getDefiningOp()); };
  for (Operation *op : ops) {
    // What a load gives is there only later.
    bool early = llvm::all_of(op->getOperands(), [&](Value value) {
      return !isHere(value) ||
             (movable.contains(value.getDefiningOp()) && !isa<LLVM::LoadOp>(value.getDefiningOp()));
    });
    if (early && op->getNumRegions() == 0 && (isa<LLVM::LoadOp>(op) || isMemoryEffectFree(op)))
      movable.insert(op);
  }
  for (Operation *op : llvm::reverse(ops)) {
    if (!movable.contains(op) || !(isa<LLVM::LoadOp>(op) || needed.contains(op)))
      continue;
    needed.insert(op);
    for (Value operand : op->getOperands())
      if (isHere(operand))
        needed.insert(operand.getDefiningOp());
  }
  for (Operation *op : movable)
    if (needed.contains(op))
      op->moveBefore(before);
}

} // namespace izhc::cuda
