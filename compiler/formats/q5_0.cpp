// Q5_0: 32 weights, w = d * (q - 16).
//   byte 0: d (float16), 2: bit 4 of q[32], 6: bits 0..3 of q (low nibble:
//   weight i, high: weight i + 16)

#include "compiler/formats/Float.h"

using namespace izhc;
using namespace izhc::formats;

static const BitField fields[] = {
    // role, firstBit, width, count, bitStride, firstElement, shift
    {FieldRole::Scale, 0, 16, 1, 0, 0, 0},
    {FieldRole::Code, 16, 1, 32, 1, 0, 4},
    {FieldRole::Code, 48, 4, 16, 8, 0, 0},
    {FieldRole::Code, 52, 4, 16, 8, 16, 0},
};

static void decode(const uint8_t *block, float *out) {
  float d = loadHalf(block);
  uint32_t high = load32(block + 2);
  for (int i = 0; i < 16; ++i) {
    int low = (block[6 + i] & 15) | (high >> i & 1) << 4;
    int up = (block[6 + i] >> 4) | (high >> (i + 16) & 1) << 4;
    out[i] = (low - 16) * d;
    out[i + 16] = (up - 16) * d;
  }
}

static constexpr FormatSpec spec = {
    .name = "q5_0",
    .ggufType = 6,
    .blockWeights = 32,
    .blockBytes = 22,
    .fields = fields,
    .codeBits = 5,
    .zeroPoint = 16,
    .decodeBlock = decode,
};

namespace izhc::formats {
const FormatSpec &q5_0() { return spec; }
} // namespace izhc::formats
