// IQ2_XS: 256 weights in 16 sub-blocks of 16, w = d / 8 * (2 s + 1) * +-grid.
//   byte 0: d (float16), 2: 32 words of 16 bits, each for 8 weights: index (9
//   bits), 7 signs; 66: s of each sub-block (4 bits)

#include "compiler/formats/Float.h"
#include "compiler/formats/Grids.h"

using namespace izhc;
using namespace izhc::formats;

static const BitField fields[] = {
    // role, firstBit, width, count, bitStride, firstElement, shift, repeats, repeatStride
    {FieldRole::Scale, 0, 16, 1, 0, 0, 0},
    {FieldRole::Index, 16, 9, 4, 16, 0, 0, 8, 64},
    {FieldRole::Sign, 25, 7, 4, 16, 0, 0, 8, 64},
    {FieldRole::Sub, 528, 4, 16, 4, 0, 0},
};

static void decode(const uint8_t *block, float *out) {
  float d = loadHalf(block);
  for (int i = 0; i < 256; ++i) {
    uint32_t word = load16(block + 2 + i / 8 * 2);
    float step = d * (0.5f + (block[66 + i / 32] >> i / 16 % 2 * 4 & 15)) * 0.25f;
    int value = gridValue(kGrid512, kThreeSizes, 8, word & 511, i % 8);
    *out++ = step * (evenSign(word >> 9, i % 8) ? -value : value);
  }
}

static constexpr Grid grid = {
    .groupWeights = 8, .entries = kGrid512, .values = kThreeSizes, .signBits = 7};

static constexpr FormatSpec spec = {
    .name = "iq2_xs",
    .ggufType = 17,
    .blockWeights = 256,
    .blockBytes = 74,
    .fields = fields,
    .grid = &grid,
    .zeroPoint = 43,
    .factor = 0.125f,
    .subWeights = 16,
    .subBits = 4,
    .subStep = 2,
    .subZero = -1,
    .decodeBlock = decode,
};

namespace izhc::formats {
const FormatSpec &iq2_xs() { return spec; }
} // namespace izhc::formats
