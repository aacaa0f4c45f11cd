// The stages on the IR, from the model's module to the plan.

#pragma once

#include "compiler/pipeline/Compile.h"
#include "mlir/IR/BuiltinOps.h"

namespace izhc {

// A stage's name and what it does to a module.
struct Stage {
  llvm::StringRef name;
  std::function<llvm::LogicalResult(mlir::ModuleOp)> run;
};

// lm, pack and plan, in order.
std::vector<Stage> irStages(bool exact, int64_t cacheBits);

} // namespace izhc
