// IQ3_XXS: 256 weights in 8 sub-blocks of 32, w = d / 4 * (2 s + 1) * +-grid.
//   byte 0: d (float16), 2: 64 indices of 4 weights, 66: of each sub-block 32
//   bits: 4 times 7 signs, then s (4 bits)

#include "compiler/formats/Float.h"
#include "compiler/formats/Grids.h"

using namespace izhc;
using namespace izhc::formats;

static const BitField fields[] = {
    // role, firstBit, width, count, bitStride, firstElement, shift, repeats, repeatStride
    {FieldRole::Scale, 0, 16, 1, 0, 0, 0},
    {FieldRole::Index, 16, 8, 8, 8, 0, 0, 8, 64},
    {FieldRole::Sign, 528, 7, 4, 7, 0, 0, 8, 32},
    {FieldRole::Sub, 556, 4, 1, 0, 0, 0, 8, 32},
};

static void decode(const uint8_t *block, float *out) {
  float d = loadHalf(block);
  for (int i = 0; i < 256; ++i) {
    uint32_t signs = load32(block + 66 + i / 32 * 4);
    float step = d * (0.5f + (signs >> 28)) * 0.5f;
    int value = gridValue(kGrid4x256, kEightSizes, 4, block[2 + i / 4], i % 4);
    *out++ = step * (evenSign(signs >> i / 8 % 4 * 7 & 127, i % 8) ? -value : value);
  }
}

static constexpr Grid grid = {
    .groupWeights = 4, .entries = kGrid4x256, .values = kEightSizes, .signBits = 7};

static constexpr FormatSpec spec = {
    .name = "iq3_xxs",
    .ggufType = 18,
    .blockWeights = 256,
    .blockBytes = 98,
    .fields = fields,
    .grid = &grid,
    .zeroPoint = 62,
    .factor = 0.25f,
    .subWeights = 32,
    .subBits = 4,
    .subStep = 2,
    .subZero = -1,
    .decodeBlock = decode,
};

namespace izhc::formats {
const FormatSpec &iq3_xxs() { return spec; }
} // namespace izhc::formats
