// From a planned module to the structures that an artifact is written from.

#pragma once

#include "compiler/emit/Artifact.h"
#include "mlir/IR/BuiltinOps.h"

namespace izhc::emit {

// Reads the `plan` ops of a module; dialects/plan/PlanOps.td says which there
// are and in which order. Fails with an error at the op that doesn't fit.
llvm::FailureOr<Plan> readPlan(mlir::ModuleOp module);

} // namespace izhc::emit
