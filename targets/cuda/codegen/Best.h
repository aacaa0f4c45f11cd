// The kernel that finds the largest logit of each row, so that rows need not
// leave the device where nothing else is asked of them.

#pragma once

#include "mlir/IR/BuiltinOps.h"

namespace izhc::cuda {

constexpr llvm::StringLiteral kBestKernel = "izh_best";
constexpr int64_t kBestThreads = 1024;

// Adds it to `module`: a block for each row takes the address of the rows, where
// an int32 of each goes, and how many floats a row has. It is the number of the
// largest, of equal ones the first, or -1 where one is not below infinity.
void addBest(mlir::ModuleOp module, bool overlaps);

} // namespace izhc::cuda
