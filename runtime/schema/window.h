// How much a layer with a window keeps of a sequence: compiler and runtime count
// alike.

#pragma once

#include <cstdint>

namespace izh::schema {

// The most tokens of a window; one that reaches further back hides nothing.
constexpr uint64_t kMaxWindow = uint64_t{1} << 30;

// Pages that hold, wherever they begin, all tokens that a step of `step_tokens`
// reads and writes where each token sees `window` of them, itself among them. A
// ring of so many pages never overwrites what is still read.
constexpr uint64_t window_pages(uint64_t window, uint64_t step_tokens, uint64_t page_tokens) {
  const uint64_t tokens = window + step_tokens - 1;
  return (tokens + page_tokens - 2) / page_tokens + 1;
}

}  // namespace izh::schema
