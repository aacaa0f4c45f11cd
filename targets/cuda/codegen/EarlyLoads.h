// Loads that are in flight while a block does something else.

#pragma once

#include "mlir/IR/Operation.h"

namespace izhc::cuda {

// Moves loads, with what their addresses are computed from, from the ops behind
// `after` to before `before`: both are ops of one block, `before` comes first.
// Loads whose addresses depend on loads stay. What they read must not be written
// between the two.
void loadEarly(mlir::Operation *before, mlir::Operation *after);

} // namespace izhc::cuda
