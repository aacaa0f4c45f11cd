// IQ4_XS: 256 weights in 8 sub-blocks of 32, w = d * (scale - 32) * codebook[q].
//   byte 0: d (float16), 2: bits 2i..2i+1 are bits 4..5 of scale i (2 bytes),
//   4: bits 4i..4i+3 are bits 0..3 of scale i (4 bytes), 8: q[128]: byte
//   16s + i holds weights 32s + i (low nibble) and 32s + 16 + i (high)

#include "compiler/formats/Codebooks.h"
#include "compiler/formats/Float.h"

using namespace izhc;
using namespace izhc::formats;

static const BitField fields[] = {
    // role, firstBit, width, count, bitStride, firstElement, shift
    {FieldRole::Scale, 0, 16, 1, 0, 0, 0},    {FieldRole::Sub, 16, 2, 8, 2, 0, 4},
    {FieldRole::Sub, 32, 4, 8, 4, 0, 0},      {FieldRole::Code, 64, 4, 16, 8, 0, 0},
    {FieldRole::Code, 68, 4, 16, 8, 16, 0},   {FieldRole::Code, 192, 4, 16, 8, 32, 0},
    {FieldRole::Code, 196, 4, 16, 8, 48, 0},  {FieldRole::Code, 320, 4, 16, 8, 64, 0},
    {FieldRole::Code, 324, 4, 16, 8, 80, 0},  {FieldRole::Code, 448, 4, 16, 8, 96, 0},
    {FieldRole::Code, 452, 4, 16, 8, 112, 0}, {FieldRole::Code, 576, 4, 16, 8, 128, 0},
    {FieldRole::Code, 580, 4, 16, 8, 144, 0}, {FieldRole::Code, 704, 4, 16, 8, 160, 0},
    {FieldRole::Code, 708, 4, 16, 8, 176, 0}, {FieldRole::Code, 832, 4, 16, 8, 192, 0},
    {FieldRole::Code, 836, 4, 16, 8, 208, 0}, {FieldRole::Code, 960, 4, 16, 8, 224, 0},
    {FieldRole::Code, 964, 4, 16, 8, 240, 0},
};

static void decode(const uint8_t *block, float *out) {
  float d = loadHalf(block);
  uint32_t high = load16(block + 2), low = load32(block + 4);
  for (int sub = 0; sub < 8; ++sub) {
    int scale = (low >> 4 * sub & 15) | (high >> 2 * sub & 3) << 4;
    float step = d * (scale - 32);
    for (int i = 0; i < 32; ++i) {
      uint8_t pair = block[8 + 16 * sub + i % 16];
      *out++ = step * kUnevenSteps[i < 16 ? pair & 15 : pair >> 4];
    }
  }
}

static constexpr FormatSpec spec = {
    .name = "iq4_xs",
    .ggufType = 23,
    .blockWeights = 256,
    .blockBytes = 136,
    .fields = fields,
    .codeBits = 4,
    .codebook = kUnevenSteps,
    .signedCodes = true,
    .subWeights = 32,
    .subBits = 6,
    .subZero = 32,
    .decodeBlock = decode,
};

namespace izhc::formats {
const FormatSpec &iq4_xs() { return spec; }
} // namespace izhc::formats
