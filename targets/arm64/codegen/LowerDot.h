// Lowers pack.dot to the dot instructions of one 64-bit Arm instruction set.

#pragma once

#include "mlir/IR/BuiltinOps.h"

namespace izhc::arm64 {

enum class DotUnit {
  Neon,    // smull, smlal: sums kept in 16 bits as far as they fit, then sadalp
  DotProd, // sdot
  I8mm,    // smmla for two rows of activations at a time, sdot for the last
};

// Both multiply signed bytes: fails with a diagnostic where unsigned codes may
// be above 127.
llvm::LogicalResult lowerDots(mlir::ModuleOp module, DotUnit unit);

} // namespace izhc::arm64
