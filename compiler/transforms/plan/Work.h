// How the work of an op is cut: its units, what their number depends on, and
// how many a thread takes at a time. Also how much there is to do for a token,
// from which a speed can be predicted.

#pragma once

#include "dialects/pack/Pack.h"
#include "dialects/plan/Plan.h"

namespace izhc {

struct Work {
  int64_t units = 1;
  plan::Extent extent = plan::Extent::Fixed;
  int64_t grain = 1;
  // Bytes of weights that a step of one token reads.
  int64_t tokenBytes = 0;
  // Two for each weight that meets a token, or a row of the outputs.
  int64_t tokenOperations = 0;
  int64_t outputOperations = 0;
};

// `op` is one of those of PackOps.td that become kernels, in tensor form.
Work divideWork(mlir::Operation *op);

} // namespace izhc
