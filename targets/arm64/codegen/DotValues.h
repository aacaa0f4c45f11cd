// Where dots take their values from: what the lowerings of dots share.

#pragma once

#include "compiler/target/vector/DotChains.h"

namespace izhc::arm64 {

mlir::Value intrinsic(KernelBuilder &k, mlir::Type result, llvm::StringRef name,
                      mlir::ValueRange operands);

// The address base + offset.
struct Place {
  mlir::Value base;
  int64_t offset = 0;
};

// Where the four bytes that a dot's values repeat are loaded from; no base if
// they are made otherwise.
Place placeOf(pack::DotOp dot);

// Whether the first four dots take their values from 16 bytes in a row.
bool valuesInARow(llvm::ArrayRef<pack::DotOp> dots);

} // namespace izhc::arm64
