// IQ3_S: 256 weights in 8 sub-blocks of 32, w = d * (2 s + 1) * +-grid.
//   byte 0: d (float16), 2: bits 0..7 of 64 indices of 4 weights, 66: bit 8 of
//   the indices, 74: 32 times 8 signs, 106: s of each sub-block (4 bits)

#include "compiler/formats/Float.h"
#include "compiler/formats/Grids.h"

using namespace izhc;
using namespace izhc::formats;

static const BitField fields[] = {
    // role, firstBit, width, count, bitStride, firstElement, shift, repeats, repeatStride
    {FieldRole::Scale, 0, 16, 1, 0, 0, 0},        {FieldRole::Index, 16, 8, 8, 8, 0, 0, 8, 64},
    {FieldRole::Index, 528, 1, 8, 1, 0, 8, 8, 8}, {FieldRole::Sign, 592, 8, 4, 8, 0, 0, 8, 32},
    {FieldRole::Sub, 848, 4, 8, 4, 0, 0},
};

static void decode(const uint8_t *block, float *out) {
  float d = loadHalf(block);
  for (int i = 0; i < 256; ++i) {
    int index = block[2 + i / 4] | (block[66 + i / 32] >> i / 4 % 8 & 1) << 8;
    float step = d * (1 + 2 * (block[106 + i / 64] >> i / 32 % 2 * 4 & 15));
    int value = gridValue(kGrid4x512, kOddSizes, 4, index, i % 4);
    *out++ = step * (block[74 + i / 8] >> i % 8 & 1 ? -value : value);
  }
}

static constexpr Grid grid = {
    .groupWeights = 4, .entries = kGrid4x512, .values = kOddSizes, .signBits = 8};

static constexpr FormatSpec spec = {
    .name = "iq3_s",
    .ggufType = 21,
    .blockWeights = 256,
    .blockBytes = 110,
    .fields = fields,
    .grid = &grid,
    .zeroPoint = 15,
    .subWeights = 32,
    .subBits = 4,
    .subStep = 2,
    .subZero = -1,
    .decodeBlock = decode,
};

namespace izhc::formats {
const FormatSpec &iq3_s() { return spec; }
} // namespace izhc::formats
