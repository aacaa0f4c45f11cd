// Rotary positions: the frequencies of a model with their scaling.

#pragma once

#include "compiler/models/blocks/Hyper.h"

namespace izhc {

// Where a model's angles come from, for models with more than one kind.
struct RopeOptions {
  // Keys behind the architecture's name.
  const char *baseKey = "rope.freq_base";
  double base = 10000; // without that key
  const char *dimensionKey = "rope.dimension_count";
  int64_t headDim = 0; // 0: the model's
  // Whether rope.scaling.* and the tensor of divisors apply.
  bool scaled = true;
  // Whether cosines and sines grow with yarn.
  bool grows = true;
  // Growth of the magnitude, see lm.rope_angles.
  float growth = 0;
  int64_t period = 1;
};

// The lm.rope_angles of this step, of rope.dimension_count values (the whole
// head if the key is missing), with rope.freq_base, rope.scaling.* (linear,
// yarn, longrope) and the divisors of the tensor rope_freqs.weight where
// they are given. Which of longrope's two lists of divisors applies is decided for
// the whole model by the builder's tokens: keys of one text can't have both.
mlir::Value ropeAngles(ModelBuilder &builder, const Hyper &hyper, const RopeOptions &options = {});

// The tokens that the model is best at if nobody asks for more: with longrope the
// length that it was first trained for if its context is longer, since the factors
// of longer texts spoil short ones.
int64_t ropeContext(ModelBuilder &builder, const Hyper &hyper);

} // namespace izhc
