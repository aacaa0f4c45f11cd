// What a machine can do at most, and what a model asks of it: the numbers that
// `bench` divides.

#pragma once

#include "runtime/include/izh/izh.h"

#include <cstdint>
#include <string>

namespace izh::rt {

// Work of a model, as the compiler counted it.
struct ModelWork {
  uint64_t weightBytesPerToken = 0; // read to generate one token
  uint64_t operationsPerToken = 0;  // of products in a prompt's token: two a weight
  uint64_t operationsPerOutput = 0; // the same, of a row of logits
  uint64_t stepTokens = 1;          // tokens of a prompt that read the weights once
  uint64_t phases = 0;              // of a step, each of which all threads meet behind
};
ModelWork modelWork(const izh_model *model);
// Bytes of keys and values that a token with `tokens` before it reads.
uint64_t cacheBytesRead(const izh_model_info &info, uint64_t tokens);

struct MachineLimits {
  uint32_t threads = 0;
  double readGbps = 0; // of the mapped weights, or of a device's memory
  double int8Gops = 0; // 0: not measured
  // Microseconds that a phase takes beyond its bytes at that speed: all threads
  // meet, take over what others have left, and begin to read elsewhere. 0: not
  // measured.
  double phaseUs = 0;
  std::string how; // which instructions, or what a device's memory did
};

// Tokens a second that a machine of these limits reaches if the slower of
// memory and arithmetic, and the threads' meetings, take all of the time.
// `bytes` are those of a token, weights and cache.
double predictGeneration(const MachineLimits &limits, const ModelWork &work, uint64_t bytes);
double predictPrompt(const MachineLimits &limits, const ModelWork &work, uint64_t tokens);

} // namespace izh::rt
