// Declarations of the `lm` dialect. See LmOps.td for meanings.

#pragma once

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/lm/LmDialect.h.inc"
#include "dialects/lm/LmEnums.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/lm/LmTypes.h.inc"

#define GET_OP_CLASSES
#include "dialects/lm/LmOps.h.inc"

namespace izhc::lm {

// The width of `rows` or the length of a vector.
inline int64_t widthOf(mlir::Value value) {
  return llvm::cast<mlir::ShapedType>(value.getType()).getShape().back();
}

// The type of rows of `width` values, one for each token.
inline mlir::RankedTensorType rowsType(mlir::MLIRContext *context, int64_t width) {
  return mlir::RankedTensorType::get({mlir::ShapedType::kDynamic, width},
                                     mlir::Float32Type::get(context));
}

} // namespace izhc::lm
