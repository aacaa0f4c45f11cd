// Rotary positions: the frequencies of a model with their scaling.

#pragma once

#include "compiler/models/blocks/Hyper.h"

namespace izhc {

// The lm.rope_angles of this step, of rope.dimension_count values (the whole
// head if the key is missing), with rope.freq_base, rope.scaling.* and the
// divisors of the tensor rope_freqs.weight where they are given.
mlir::Value ropeAngles(ModelBuilder &builder, const Hyper &hyper);

} // namespace izhc
