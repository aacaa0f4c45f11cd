// Q5_1: 32 weights, w = d * q + m.
//   byte 0: d (float16), 2: m (float16), 4: bit 4 of q[32], 8: bits 0..3 of q
//   (low nibble: weight i, high: weight i + 16)

#include "compiler/formats/Float.h"

using namespace izhc;
using namespace izhc::formats;

static const BitField fields[] = {
    // role, firstBit, width, count, bitStride, firstElement, shift
    {FieldRole::Scale, 0, 16, 1, 0, 0, 0},  {FieldRole::Min, 16, 16, 1, 0, 0, 0},
    {FieldRole::Code, 32, 1, 32, 1, 0, 4},  {FieldRole::Code, 64, 4, 16, 8, 0, 0},
    {FieldRole::Code, 68, 4, 16, 8, 16, 0},
};

static void decode(const uint8_t *block, float *out) {
  float d = loadHalf(block), m = loadHalf(block + 2);
  uint32_t high = load32(block + 4);
  for (int i = 0; i < 16; ++i) {
    int low = (block[8 + i] & 15) | (high >> i & 1) << 4;
    int up = (block[8 + i] >> 4) | (high >> (i + 16) & 1) << 4;
    out[i] = low * d + m;
    out[i + 16] = up * d + m;
  }
}

static constexpr FormatSpec spec = {
    .name = "q5_1",
    .ggufType = 7,
    .blockWeights = 32,
    .blockBytes = 24,
    .fields = fields,
    .codeBits = 5,
    .hasMin = true,
    .decodeBlock = decode,
};

namespace izhc::formats {
const FormatSpec &q5_1() { return spec; }
} // namespace izhc::formats
