// Passes from `lm` to `pack` and on `pack`, and their order. See Passes.td.

#pragma once

#include "dialects/lm/Lm.h"
#include "dialects/pack/Pack.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace izhc {

#define GEN_PASS_DECL
#include "compiler/transforms/pack/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "compiler/transforms/pack/Passes.h.inc"

struct PackOptions {
  // Float32 activations for all formats.
  bool exact = false;
  // Of a value in a cache: 16, 8 or 4.
  int64_t cacheBits = 16;
};

// The `pack` stage on a module: afterwards functions hold only `pack` ops,
// unless something has no kernel; then the plan stage says so.
void buildPackPasses(mlir::OpPassManager &manager, const PackOptions &options);

} // namespace izhc
