// Four numbers at a time, in what every processor of a supported architecture
// has. For loops over a vocabulary; the model's own products are compiled.

#pragma once

#include <cstdint>
#include <cstring>

namespace izh {

using Floats = float __attribute__((vector_size(16)));
using Words = int32_t __attribute__((vector_size(16)));

constexpr uint32_t kLanes = sizeof(Floats) / sizeof(float);

inline Floats load_lanes(const float* from) {
  Floats lanes;
  memcpy(&lanes, from, sizeof(lanes));
  return lanes;
}

inline void store_lanes(const Floats& lanes, float* to) { memcpy(to, &lanes, sizeof(lanes)); }

inline Floats all_lanes(float value) { return Floats{value, value, value, value}; }

// Of each lane the greater; `b` where one is not a number.
inline Floats greater_lanes(const Floats& a, const Floats& b) { return a > b ? a : b; }

inline float greatest_lane(const Floats& lanes) {
  float greatest = lanes[0];
  for (uint32_t i = 1; i < kLanes; ++i) greatest = lanes[i] > greatest ? lanes[i] : greatest;
  return greatest;
}

}  // namespace izh
