// Q4_1: 32 weights, w = d * q + m.
//   byte 0: d (float16), 2: m (float16), 4: q[16] (low nibble: weight i,
//   high: weight i + 16)

#include "compiler/formats/Float.h"

using namespace izhc;
using namespace izhc::formats;

static const BitField fields[] = {
    // role, firstBit, width, count, bitStride, firstElement, shift
    {FieldRole::Scale, 0, 16, 1, 0, 0, 0},
    {FieldRole::Min, 16, 16, 1, 0, 0, 0},
    {FieldRole::Code, 32, 4, 16, 8, 0, 0},
    {FieldRole::Code, 36, 4, 16, 8, 16, 0},
};

static void decode(const uint8_t *block, float *out) {
  float d = loadHalf(block), m = loadHalf(block + 2);
  for (int i = 0; i < 16; ++i) {
    out[i] = (block[4 + i] & 15) * d + m;
    out[i + 16] = (block[4 + i] >> 4) * d + m;
  }
}

static constexpr FormatSpec spec = {
    .name = "q4_1",
    .ggufType = 3,
    .blockWeights = 32,
    .blockBytes = 20,
    .fields = fields,
    .codeBits = 4,
    .hasMin = true,
    .decodeBlock = decode,
};

namespace izhc::formats {
const FormatSpec &q4_1() { return spec; }
} // namespace izhc::formats
