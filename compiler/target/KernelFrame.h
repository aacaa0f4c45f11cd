// A kernel function under construction, and the walk that makes one of every
// plan.kernel. Shared by vector and scalar code generators.

#pragma once

#include "compiler/target/KernelBuilder.h"
#include "dialects/pack/Pack.h"
#include "dialects/plan/Plan.h"
#include "mlir/IR/BuiltinOps.h"

namespace izhc {

struct KernelFrameBase {
  KernelBuilder &k;
  mlir::Value begin, end; // units to compute
  mlir::Value tokens, outputs, tiles;
  llvm::SmallVector<mlir::Value> pointers; // base address of each block argument

  // The base address bound to an operand (a block argument of the kernel).
  mlir::Value address(mlir::Value operand) const {
    return pointers[llvm::cast<mlir::BlockArgument>(operand).getArgNumber()];
  }
  mlir::Value rows(pack::RowSet set) const {
    return set == pack::RowSet::Tokens ? tokens : outputs;
  }
};

// Replaces every plan.kernel of `module` by a func.func of the same name with
// the kernel ABI whose body `emit` writes, one call an op of the kernel, and
// drops all else that is at the module's top level.
llvm::LogicalResult
replaceKernels(mlir::ModuleOp module, FloatAbilities floats,
               llvm::function_ref<llvm::LogicalResult(KernelFrameBase &, mlir::Operation *)> emit);

} // namespace izhc
