// Rows of values at once: float formats as loops that the compiler vectorises,
// all others block by block.

#include "compiler/formats/Float.h"

#include <bit>
#include <cstring>

using namespace izhc;
using formats::load16;

// halfToFloat without branches: as a single whose exponent is 112 too small.
// What was infinite or no number lies from 2^16 on after that is mended.
static float widenHalf(uint32_t bits) {
  float value = std::bit_cast<float>((bits & 0x7fff) << 13) * 0x1p112f;
  uint32_t special = value >= 0x1p16f ? 0x7f800000 : 0;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | special | (bits & 0x8000) << 16);
}

void izhc::decodeBlocks(const FormatSpec &format, const uint8_t *bytes, int64_t blocks,
                        float *out) {
  switch (format.kind) {
  case ElementKind::F32:
    std::memcpy(out, bytes, blocks * 4);
    return;
  case ElementKind::F16:
    for (int64_t i = 0; i < blocks; ++i)
      out[i] = widenHalf(load16(bytes + 2 * i));
    return;
  case ElementKind::BF16:
    for (int64_t i = 0; i < blocks; ++i)
      out[i] = std::bit_cast<float>(uint32_t(load16(bytes + 2 * i)) << 16);
    return;
  case ElementKind::Quantized:
    for (int64_t i = 0; i < blocks; ++i)
      format.decodeBlock(bytes + i * format.blockBytes, out + i * format.blockWeights);
    return;
  }
}
