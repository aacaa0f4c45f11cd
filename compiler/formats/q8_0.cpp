// Q8_0: 32 weights, w = d * q.
//   byte 0: d (float16), 2: q[32] (int8)

#include "compiler/formats/Float.h"

using namespace izhc;
using namespace izhc::formats;

static const BitField fields[] = {
    // role, firstBit, width, count, bitStride, firstElement, shift
    {FieldRole::Scale, 0, 16, 1, 0, 0, 0},
    {FieldRole::Code, 16, 8, 32, 8, 0, 0},
};

static void decode(const uint8_t *block, float *out) {
  float d = loadHalf(block);
  for (int i = 0; i < 32; ++i)
    out[i] = static_cast<int8_t>(block[2 + i]) * d;
}

static constexpr FormatSpec spec = {
    .name = "q8_0",
    .ggufType = 8,
    .blockWeights = 32,
    .blockBytes = 34,
    .fields = fields,
    .codeBits = 8,
    .signedCodes = true,
    .decodeBlock = decode,
};

namespace izhc::formats {
const FormatSpec &q8_0() { return spec; }
} // namespace izhc::formats
