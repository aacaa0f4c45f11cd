// Measures what a machine can do at most.

#pragma once

#include "tools/izh-rt/Limits.h"

#include <cstdint>
#include <string>
#include <vector>

namespace izh {
struct Team;
}

namespace izh::rt {

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
