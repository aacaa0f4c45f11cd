// How products of attention see keys, values and their factors: rows of 16
// lanes times two numbers, in the numbers of a PairNumber.

#pragma once

#include "compiler/target/vector/VectorLowering.h"
#include "dialects/pack/KvLayout.h"

namespace izhc {

struct PairForm {
  PairNumber number;
  int64_t lanes; // of a float32 vector

  // Numbers of a row take as many bits as those of a float16 page.
  bool isNarrow() const { return number != PairNumber::Float32; }
  int64_t pairBytes() const { return isNarrow() ? 4 : 8; }
  int64_t rowBytes() const { return pack::KvLayout::kLanes * pairBytes(); }
  // Vectors of a row, each of which adds to one accumulator.
  int64_t vectors() const { return rowBytes() / vectorBytes(); }
  int64_t vectorBytes() const { return 4 * lanes; }
  // Numbers of a vector.
  int64_t numbers() const { return isNarrow() ? 2 * lanes : lanes; }

  mlir::Type element(KernelBuilder &k) const {
    switch (number) {
    case PairNumber::Float32:
      return k.f32();
    case PairNumber::BFloat16:
      return k.builder.getBF16Type();
    case PairNumber::Float16:
      return k.builder.getF16Type();
    }
    return {};
  }
};

} // namespace izhc
