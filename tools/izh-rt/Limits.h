// What a machine can do at most, and what a model asks of it: the two numbers
// that `bench` divides.

#pragma once

#include "runtime/include/izh/izh.h"

#include <cstdint>
#include <string>

namespace izh::rt {

// Work of a model, from its plan.
struct ModelWork {
  uint64_t weightBytesPerToken = 0; // read to generate one token
  uint64_t operationsPerToken = 0;  // of products in a prompt's token: two a weight
  uint64_t operationsPerOutput = 0; // the same, of a row of logits
};
ModelWork modelWork(const izh_model *model);

struct MachineLimits {
  double readGbps = 0; // of the mapped weights
  double int8Gops = 0;
  std::string how; // which instructions
};
// Measures with `threads` threads for about half a second.
MachineLimits measureLimits(const izh_model *model, uint32_t threads);

// As the system calls the processor, or "".
std::string processorName();

} // namespace izh::rt
