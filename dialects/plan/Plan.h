// Declarations of the `plan` dialect. See PlanOps.td for meanings.

#pragma once

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace izhc::plan {
// Every buffer, weight and constant starts at a multiple of this many bytes.
constexpr int64_t kAlignment = 64;
} // namespace izhc::plan

#include "dialects/plan/PlanDialect.h.inc"
#include "dialects/plan/PlanEnums.h.inc"

#define GET_OP_CLASSES
#include "dialects/plan/PlanOps.h.inc"
