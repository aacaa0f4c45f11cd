// Sums of squares of what a running model multiplies its matrices with. The
// model is compiled with float32 activations and runs on one thread; between
// the plan and its kernels stands a function that looks at their operands.

#pragma once

#include "compiler/import/Importance.h"
#include "runtime/include/izh/izh.h"
#include <memory>

namespace izhc::tool {

class Probes {
public:
  virtual ~Probes() = default;
  // Of every matrix that was read, in the artifact's order.
  virtual std::vector<ImportanceSums> sums() const = 0;

  // Watches `context`, which must be the only one that is watched and live as
  // long as the result.
  static std::unique_ptr<Probes> watch(izh_context *context);
};

} // namespace izhc::tool
