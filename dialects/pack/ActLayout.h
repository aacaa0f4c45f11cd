// Byte offsets inside one record of a `!pack.act` (one row of activations).
//
//   f32       float[padded]
//   block32   int8 codes[padded] | float scales[padded/32] | ...
//   block256  int8 codes[padded] | float steps[padded/256]
//             | int32 exponents[padded/32], each already shifted left by 23 | ...
//   ... =     float sums[padded/32], if asked for: block32 scale * sum(codes),
//             block256 2^exponent * sum(codes)
//             | for each z of corr32: int32[padded/32] = -z * sum(codes of 32)
//             | for each z of corr16: int32[padded/16] = -z * sum(codes of 16)
//
// `padded` is the width rounded up to 64 (f32, block32) or 256 (block256); values
// beyond the width are 0. Every field starts at a multiple of 64 bytes.

#pragma once

#include "dialects/pack/Pack.h"

namespace izhc::pack {

struct ActLayout {
  int64_t padded = 0;
  int64_t codes = 0;
  int64_t scales = 0;
  int64_t exponents = -1;
  int64_t sums = -1;
  // In the order of the type's corr32 and corr16.
  llvm::SmallVector<int64_t, 4> corr32;
  llvm::SmallVector<int64_t, 4> corr16;
  // Bytes from one record to the next: a multiple of 64, never of 4096, so
  // that neighbouring rows don't fall into the same cache sets.
  int64_t stride = 0;

  explicit ActLayout(ActType type);

  // The offset of the field for zero point `z`, or -1 if the type lacks it.
  static int64_t find(llvm::ArrayRef<int64_t> zs, llvm::ArrayRef<int64_t> offsets, int64_t z);
};

} // namespace izhc::pack
