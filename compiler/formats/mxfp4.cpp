// MXFP4: 32 weights, w = 2^(e - 127) * f(q), the microscaling format of the
// Open Compute Project with floats of four bits.
//   byte 0: e, 1: q[16] (low nibble: weight i, high: weight i + 16)

#include "compiler/formats/Codebooks.h"
#include "compiler/formats/Float.h"

#include <cmath>

using namespace izhc;
using namespace izhc::formats;

static const BitField fields[] = {
    // role, firstBit, width, count, bitStride, firstElement, shift
    {FieldRole::Scale, 0, 8, 1, 0, 0, 0},
    {FieldRole::Code, 8, 4, 16, 8, 0, 0},
    {FieldRole::Code, 12, 4, 16, 8, 16, 0},
};

static void decode(const uint8_t *block, float *out) {
  float half = block[0] == 255 ? NAN : std::ldexp(0.5f, block[0] - 127);
  for (int i = 0; i < 16; ++i) {
    out[i] = half * kTinyFloats[block[1 + i] & 15];
    out[i + 16] = half * kTinyFloats[block[1 + i] >> 4];
  }
}

static constexpr FormatSpec spec = {
    .name = "mxfp4",
    .ggufType = 39,
    .blockWeights = 32,
    .blockBytes = 17,
    .fields = fields,
    .codeBits = 4,
    .codebook = kTinyFloatCodes,
    .zeroPoint = kTinyFloatZero,
    .scaleKind = ScaleKind::PowerOfTwo,
    .factor = 0.5f,
    .decodeBlock = decode,
};

namespace izhc::formats {
const FormatSpec &mxfp4() { return spec; }
} // namespace izhc::formats
