// The kernel that finds the largest logit of each row, so that rows need not
// leave the device where nothing else is asked of them.

#pragma once

#include "mlir/IR/BuiltinOps.h"

namespace izhc::cuda {

constexpr llvm::StringLiteral kBestKernel = "izh_best";
constexpr int64_t kBestThreads = 1024;

// Adds it to `module`; runtime/schema/device_code.h says what it takes and does.
void addBest(mlir::ModuleOp module, bool overlaps);

} // namespace izhc::cuda
