// Passes on the `lm` dialect and their order. See Passes.td.

#pragma once

#include "dialects/lm/Lm.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace izhc {

#define GEN_PASS_DECL
#include "compiler/transforms/lm/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "compiler/transforms/lm/Passes.h.inc"

// The `lm` stage on a module.
void buildLmPasses(mlir::OpPassManager &manager);

} // namespace izhc
