// Passes from `pack` to `plan` and on `plan`, and their order. See Passes.td.

#pragma once

#include "dialects/pack/Pack.h"
#include "dialects/plan/Plan.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace izhc {

#define GEN_PASS_DECL
#include "compiler/transforms/plan/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "compiler/transforms/plan/Passes.h.inc"

// The `plan` stage on a module. What it leaves is described in PlanOps.td.
void buildPlanPasses(mlir::OpPassManager &manager);

} // namespace izhc
