// From the tensor form of a `pack` op to its buffer form inside a kernel.

#pragma once

#include "dialects/pack/Pack.h"
#include "mlir/IR/Builders.h"

namespace izhc {

// True for the ops that have a buffer form, and so a kernel.
bool hasKernel(mlir::Operation *op);

// The operands that a kernel binds: all but the residual, whose rows are
// those of the destination.
llvm::SmallVector<mlir::Value> boundOperands(mlir::Operation *op);

// Builds the buffer form of `op`, for which hasKernel() holds. `arguments`
// stand for the bound operands, then comes the destination.
void createBufferForm(mlir::OpBuilder &builder, mlir::Operation *op, mlir::ValueRange arguments);

} // namespace izhc
