// IQ4_NL: 32 weights, w = d * codebook[q].
//   byte 0: d (float16), 2: q[16] (low nibble: weight i, high: weight i + 16)

#include "compiler/formats/Codebooks.h"
#include "compiler/formats/Float.h"

using namespace izhc;
using namespace izhc::formats;

static const BitField fields[] = {
    // role, firstBit, width, count, bitStride, firstElement, shift
    {FieldRole::Scale, 0, 16, 1, 0, 0, 0},
    {FieldRole::Code, 16, 4, 16, 8, 0, 0},
    {FieldRole::Code, 20, 4, 16, 8, 16, 0},
};

static void decode(const uint8_t *block, float *out) {
  float d = loadHalf(block);
  for (int i = 0; i < 16; ++i) {
    out[i] = d * kUnevenSteps[block[2 + i] & 15];
    out[i + 16] = d * kUnevenSteps[block[2 + i] >> 4];
  }
}

static constexpr FormatSpec spec = {
    .name = "iq4_nl",
    .ggufType = 20,
    .blockWeights = 32,
    .blockBytes = 18,
    .fields = fields,
    .codeBits = 4,
    .codebook = kUnevenSteps,
    .signedCodes = true,
    .decodeBlock = decode,
};

namespace izhc::formats {
const FormatSpec &iq4_nl() { return spec; }
} // namespace izhc::formats
