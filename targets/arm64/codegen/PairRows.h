// Lowers pack.dot to products of two rows with two rows.

#pragma once

#include "mlir/IR/BuiltinOps.h"

namespace izhc::arm64 {

// Lowers chains that multiply the same codes with different rows of
// activations, two by two, to smmla where that takes fewer instructions than
// sdot; leaves the other chains.
void lowerPairsOfRows(mlir::ModuleOp module);

} // namespace izhc::arm64
