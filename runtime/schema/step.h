// How many tokens a step computes.

#pragma once

#include <algorithm>
#include <cstdint>

namespace izh::schema {

// Of the plan's most, a processor takes no more at a time: with twice as many,
// rows go through the last-level cache between dispatches; with half, weights
// are decoded and threads meet twice as often. A device takes all that the plan
// allows.
constexpr uint32_t kProcessorStepTokens = 256;

constexpr uint32_t processor_step_tokens(uint32_t plan_max_tokens) {
  return std::min(plan_max_tokens, kProcessorStepTokens);
}

}  // namespace izh::schema
