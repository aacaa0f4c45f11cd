// Shifts of bytes, which most other machines lack.

#pragma once

#include "mlir/IR/BuiltinOps.h"

namespace izhc::arm64 {

// Makes shifts of 16-bit lanes whose foreign bits are masked off shifts of
// bytes; without the mask where these leave nothing foreign.
void shiftBytes(mlir::ModuleOp module);

} // namespace izhc::arm64
