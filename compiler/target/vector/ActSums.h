// Which fields of an activation record products of a format read beside codes
// and scales.

#pragma once

#include "compiler/target/vector/WeightReader.h"
#include "dialects/pack/ActLayout.h"

namespace izhc {

struct ActSums {
  // Sums of codes for the zero point of each `corrWeights` weights, and for
  // minima of 16: offsets in the record, -1 where none are read.
  int64_t corr = -1, corrWeights = 32, sums16 = -1;

  // `act` is the layout of `type`; records of floats have none.
  ActSums(const WeightReader &reader, pack::ActType type, const pack::ActLayout &act);
};

// 2^e of exponents (dwords in lanes) that a record has shifted to their place in
// a float. To add them to the bits of sums would make tiny numbers of sums that
// are 0, which decide how a later sum is rounded.
mlir::Value powerOf(KernelBuilder &k, mlir::Value exponents);

} // namespace izhc
