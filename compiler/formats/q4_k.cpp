// Q4_K: 256 weights in 8 sub-blocks of 32, w = d * scale * q - dmin * min.
//   byte 0: d (float16), 2: dmin (float16), 4: scales and minima (12 bytes,
//   SixBitScales.h), 16: q[128]: byte 32c + i holds weights 64c + i (low
//   nibble) and 64c + 32 + i (high)

#include "compiler/formats/Float.h"
#include "compiler/formats/SixBitScales.h"

using namespace izhc;
using namespace izhc::formats;

static const BitField fields[] = {
    // role, firstBit, width, count, bitStride, firstElement, shift
    {FieldRole::Scale, 0, 16, 1, 0, 0, 0},    {FieldRole::Min, 16, 16, 1, 0, 0, 0},
    {FieldRole::Sub, 32, 6, 4, 8, 0, 0},      {FieldRole::Sub, 38, 2, 4, 8, 4, 4},
    {FieldRole::SubMin, 64, 6, 4, 8, 0, 0},   {FieldRole::SubMin, 70, 2, 4, 8, 4, 4},
    {FieldRole::Sub, 96, 4, 4, 8, 4, 0},      {FieldRole::SubMin, 100, 4, 4, 8, 4, 0},
    {FieldRole::Code, 128, 4, 32, 8, 0, 0},   {FieldRole::Code, 132, 4, 32, 8, 32, 0},
    {FieldRole::Code, 384, 4, 32, 8, 64, 0},  {FieldRole::Code, 388, 4, 32, 8, 96, 0},
    {FieldRole::Code, 640, 4, 32, 8, 128, 0}, {FieldRole::Code, 644, 4, 32, 8, 160, 0},
    {FieldRole::Code, 896, 4, 32, 8, 192, 0}, {FieldRole::Code, 900, 4, 32, 8, 224, 0},
};

static void decode(const uint8_t *block, float *out) {
  float d = loadHalf(block), dmin = loadHalf(block + 2);
  const uint8_t *codes = block + 16;
  for (int sub = 0; sub < 8; ++sub) {
    uint8_t scale, min;
    sixBitScale(block + 4, sub, scale, min);
    float step = d * scale, base = dmin * min;
    for (int i = 0; i < 32; ++i) {
      uint8_t pair = codes[32 * (sub / 2) + i];
      *out++ = step * (sub % 2 ? pair >> 4 : pair & 15) - base;
    }
  }
}

static constexpr FormatSpec spec = {
    .name = "q4_k",
    .ggufType = 12,
    .blockWeights = 256,
    .blockBytes = 144,
    .fields = fields,
    .codeBits = 4,
    .subWeights = 32,
    .subBits = 6,
    .hasMin = true,
    .subtractMin = true,
    .decodeBlock = decode,
};

namespace izhc::formats {
const FormatSpec &q4_k() { return spec; }
} // namespace izhc::formats
