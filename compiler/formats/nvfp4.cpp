// NVFP4: 64 weights in 4 sub-blocks of 16, w = s * f(q): floats of four bits
// under scales that are floats of 4 exponent and 3 fraction bits.
//   byte 0: s[4], 4: q[32]: byte 8b + i holds weights 16b + i (low nibble) and
//   16b + 8 + i (high)

#include "compiler/formats/Codebooks.h"
#include "compiler/formats/Float.h"

#include <cmath>

using namespace izhc;
using namespace izhc::formats;

static const BitField fields[] = {
    // role, firstBit, width, count, bitStride, firstElement, shift
    {FieldRole::Sub, 0, 8, 4, 8, 0, 0},     {FieldRole::Code, 32, 4, 8, 8, 0, 0},
    {FieldRole::Code, 36, 4, 8, 8, 8, 0},   {FieldRole::Code, 96, 4, 8, 8, 16, 0},
    {FieldRole::Code, 100, 4, 8, 8, 24, 0}, {FieldRole::Code, 160, 4, 8, 8, 32, 0},
    {FieldRole::Code, 164, 4, 8, 8, 40, 0}, {FieldRole::Code, 224, 4, 8, 8, 48, 0},
    {FieldRole::Code, 228, 4, 8, 8, 56, 0},
};

static float scaleOf(uint8_t bits) {
  int exponent = bits >> 3 & 15, fraction = bits & 7;
  if (exponent == 15 && fraction == 7)
    return NAN;
  return exponent ? std::ldexp(8.0f + fraction, exponent - 10) : std::ldexp(fraction, -9);
}

static void decode(const uint8_t *block, float *out) {
  for (int sub = 0; sub < 4; ++sub) {
    float half = 0.5f * scaleOf(block[sub]);
    for (int i = 0; i < 8; ++i) {
      uint8_t pair = block[4 + 8 * sub + i];
      out[16 * sub + i] = half * kTinyFloats[pair & 15];
      out[16 * sub + 8 + i] = half * kTinyFloats[pair >> 4];
    }
  }
}

static constexpr FormatSpec spec = {
    .name = "nvfp4",
    .ggufType = 40,
    .blockWeights = 64,
    .blockBytes = 36,
    .fields = fields,
    .codeBits = 4,
    .codebook = kTinyFloatCodes,
    .zeroPoint = kTinyFloatZero,
    .scaleKind = ScaleKind::PerSub,
    .factor = 0.5f,
    .subWeights = 16,
    .subBits = 8,
    .decodeBlock = decode,
};

namespace izhc::formats {
const FormatSpec &nvfp4() { return spec; }
} // namespace izhc::formats
