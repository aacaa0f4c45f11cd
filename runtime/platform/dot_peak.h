// The speed limit of products of bytes: what `izh-rt bench` compares with.

#pragma once

#include <cstdint>

namespace izh {

struct DotPeak {
  uint64_t operations;  // done: two for each product of two bytes
  const char* how;      // the instructions that did them
};

// Runs `rounds` rounds of the widest products of bytes that this machine has,
// on values in registers, on this thread. A round is some thousand operations.
DotPeak dot_peak_run(uint64_t rounds);

}  // namespace izh
