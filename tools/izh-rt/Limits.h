// What a machine can do at most, and what a model asks of it: the numbers that
// `bench` divides.

#pragma once

#include "runtime/include/izh/izh.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace izh {
struct Team;
}

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
  double phaseUs = 0;  // microseconds of a phase without work; 0: not measured
  std::string how;     // which instructions, or what a device's memory did
};

// Tokens a second that a machine of these limits reaches if the slower of
// memory and arithmetic, and the threads' meetings, take all of the time.
// `bytes` are those of a token, weights and cache.
double predictGeneration(const MachineLimits &limits, const ModelWork &work, uint64_t bytes);
double predictPrompt(const MachineLimits &limits, const ModelWork &work, uint64_t tokens);

// Measures with the same number of threads as a run, on the same cores, and as
// often as it is asked: other programs and hosts change a machine's limits
// within seconds.
class LimitMeter {
public:
  LimitMeter(const izh_model *model, uint32_t threads);
  ~LimitMeter();
  LimitMeter(const LimitMeter &) = delete;
  LimitMeter &operator=(const LimitMeter &) = delete;

  // About a tenth of a second, the best of a few passes.
  void measure();
  // Medians of what was measured.
  MachineLimits limits() const;

private:
  const izh_model *model;
  uint32_t threads;
  Team *team = nullptr;
  std::vector<double> readSpeeds, dotSpeeds, phaseTimes;
};

// The limits with 1, 2, 4 … `most` threads.
std::vector<MachineLimits> limitsByThreads(const izh_model *model, uint32_t most);

// As the system calls the processor, or "".
std::string processorName();

} // namespace izh::rt
