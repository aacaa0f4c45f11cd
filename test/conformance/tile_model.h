// A model of AMX's tile instructions, after the definitions in Intel's manual,
// so that code for machines that have them is tested on those that have not:
// everything but these instructions is the code that would be shipped.

#pragma once

#include "mlir/IR/BuiltinOps.h"
#include <cstdint>

namespace izhc::conformance {

// The bits of cpu_features.def that the model stands in for.
uint64_t modelledFeatures();

// Asks the system for the use of tiles; false where they can't be used.
bool tilesPermitted();

// Replaces the tile instructions of a module that Target::lowerKernels has
// treated by calls of the model, which lives in this process. What the
// processor answers with an exception is a test failure.
void modelTiles(mlir::ModuleOp module);

// Whether this thread's model is configured, as it must not be after a kernel.
bool tilesConfigured();

} // namespace izhc::conformance
