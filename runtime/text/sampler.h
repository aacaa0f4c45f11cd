// Choosing a token from logits. The chain, in this order: repeat penalty, top-k,
// top-p, min-p, temperature, draw. Results depend on the seed, the options, the
// tokens accepted and the logits only.

#pragma once

#include "runtime/base/array.h"
#include "runtime/include/izh/izh.h"
#include "runtime/text/logit_blocks.h"

namespace izh {

// xoshiro256** (Blackman and Vigna), seeded by splitmix64.
class Random {
 public:
  explicit Random(uint64_t seed);
  uint64_t next();
  // At least 0, below 1.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  uint64_t state_[4];
};

}  // namespace izh

struct izh_sampler {
  explicit izh_sampler(const izh_sampler_options& o) : options(o), random(o.seed) {}

  izh_sampler_options options;
  izh::Random random;
  uint32_t vocabulary = 0;
  izh::LogitBlocks logits;
  // Those still in the race once it is `cut`, all tokens before; memory for all
  // of them is there from the start.
  izh::Array<izh::Candidate> candidates;
  bool cut = false;
  // The last tokens, the oldest at `oldest` once there are repeat_window.
  izh::Array<int32_t> window;
  uint32_t oldest = 0;
  // `round` if a token has been penalised in this one.
  izh::Array<uint32_t> penalised;
  uint32_t round = 0;
};
