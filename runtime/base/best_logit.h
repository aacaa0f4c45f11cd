// The greedy choice among logits.

#pragma once

#include <cstdint>

namespace izh {

// The lowest number of the greatest of `count` logits, at least 1; -1 where one
// is not a number or plus infinity.
int32_t best_logit(const float* logits, uint32_t count);

}  // namespace izh
