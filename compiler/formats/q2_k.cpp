// Q2_K: 256 weights in 16 sub-blocks of 16, w = d * scale * q - dmin * min.
//   byte 0: scale (low nibble) and min (high) of each sub-block (16 bytes),
//   16: q (64 bytes): in half n (128 weights), bits 2j..2j+1 of byte 32n + i
//   belong to weight 128n + 32j + i; 80: d (float16), 82: dmin (float16)

#include "compiler/formats/Float.h"

using namespace izhc;
using namespace izhc::formats;

static const BitField fields[] = {
    // role, firstBit, width, count, bitStride, firstElement, shift
    {FieldRole::Sub, 0, 4, 16, 8, 0, 0},      {FieldRole::SubMin, 4, 4, 16, 8, 0, 0},
    {FieldRole::Code, 128, 2, 32, 8, 0, 0},   {FieldRole::Code, 130, 2, 32, 8, 32, 0},
    {FieldRole::Code, 132, 2, 32, 8, 64, 0},  {FieldRole::Code, 134, 2, 32, 8, 96, 0},
    {FieldRole::Code, 384, 2, 32, 8, 128, 0}, {FieldRole::Code, 386, 2, 32, 8, 160, 0},
    {FieldRole::Code, 388, 2, 32, 8, 192, 0}, {FieldRole::Code, 390, 2, 32, 8, 224, 0},
    {FieldRole::Scale, 640, 16, 1, 0, 0, 0},  {FieldRole::Min, 656, 16, 1, 0, 0, 0},
};

static void decode(const uint8_t *block, float *out) {
  float d = loadHalf(block + 80), dmin = loadHalf(block + 82);
  for (int i = 0; i < 256; ++i) {
    uint8_t both = block[i / 16];
    int code = block[16 + 32 * (i / 128) + i % 32] >> 2 * (i / 32 % 4) & 3;
    float step = d * (both & 15), base = dmin * (both >> 4);
    *out++ = step * code - base;
  }
}

static constexpr FormatSpec spec = {
    .name = "q2_k",
    .ggufType = 10,
    .blockWeights = 256,
    .blockBytes = 84,
    .fields = fields,
    .codeBits = 2,
    .subWeights = 16,
    .subBits = 4,
    .hasMin = true,
    .subtractMin = true,
    .decodeBlock = decode,
};

namespace izhc::formats {
const FormatSpec &q2_k() { return spec; }
} // namespace izhc::formats
