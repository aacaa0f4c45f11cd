// TQ2_0: 256 weights of two bits, w = d * (q - 1).
//   byte 0: q (64 bytes): in half n (128 weights), bits 2j..2j+1 of byte
//   32n + i belong to weight 128n + 32j + i; 64: d (float16)

#include "compiler/formats/Float.h"

using namespace izhc;
using namespace izhc::formats;

static const BitField fields[] = {
    // role, firstBit, width, count, bitStride, firstElement, shift
    {FieldRole::Code, 0, 2, 32, 8, 0, 0},     {FieldRole::Code, 2, 2, 32, 8, 32, 0},
    {FieldRole::Code, 4, 2, 32, 8, 64, 0},    {FieldRole::Code, 6, 2, 32, 8, 96, 0},
    {FieldRole::Code, 256, 2, 32, 8, 128, 0}, {FieldRole::Code, 258, 2, 32, 8, 160, 0},
    {FieldRole::Code, 260, 2, 32, 8, 192, 0}, {FieldRole::Code, 262, 2, 32, 8, 224, 0},
    {FieldRole::Scale, 512, 16, 1, 0, 0, 0},
};

static void decode(const uint8_t *block, float *out) {
  float d = loadHalf(block + 64);
  for (int i = 0; i < 256; ++i)
    *out++ = d * ((block[32 * (i / 128) + i % 32] >> 2 * (i / 32 % 4) & 3) - 1);
}

static constexpr FormatSpec spec = {
    .name = "tq2_0",
    .ggufType = 35,
    .blockWeights = 256,
    .blockBytes = 66,
    .fields = fields,
    .codeBits = 2,
    .zeroPoint = 1,
    .decodeBlock = decode,
};

namespace izhc::formats {
const FormatSpec &tq2_0() { return spec; }
} // namespace izhc::formats
