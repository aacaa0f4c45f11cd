// How the work of an op is cut: its units, what their number depends on, and
// how many a thread takes at a time.

#pragma once

#include "dialects/pack/Pack.h"
#include "dialects/plan/Plan.h"

namespace izhc {

struct Work {
  int64_t units = 1;
  plan::Extent extent = plan::Extent::Fixed;
  int64_t grain = 1;
};

// `op` is one of those of PackOps.td that become kernels, in tensor form.
Work divideWork(mlir::Operation *op);

} // namespace izhc
