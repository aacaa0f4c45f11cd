// Products with a Hadamard matrix, in place.

#pragma once

#include "compiler/target/KernelBuilder.h"

namespace izhc {

// Multiplies each run of n of the `count` floats at `at` by the symmetric
// orthogonal matrix H / sqrt(n), n being the largest power of two that divides
// `count`; `lanes` divides n. Applying it twice gives the floats back.
void emitHadamard(KernelBuilder &k, mlir::Value at, int64_t count, int64_t lanes);

} // namespace izhc
