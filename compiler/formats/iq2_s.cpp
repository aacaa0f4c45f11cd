// IQ2_S: 256 weights in 16 sub-blocks of 16, w = d / 8 * (2 s + 1) * +-grid.
//   byte 0: d (float16), 2: bits 0..7 of 32 indices of 8 weights, 34: 32 times
//   8 signs, 66: bits 8..9 of the indices, 74: s of each sub-block (4 bits)

#include "compiler/formats/Float.h"
#include "compiler/formats/Grids.h"

using namespace izhc;
using namespace izhc::formats;

static const BitField fields[] = {
    // role, firstBit, width, count, bitStride, firstElement, shift, repeats, repeatStride
    {FieldRole::Scale, 0, 16, 1, 0, 0, 0},        {FieldRole::Index, 16, 8, 4, 8, 0, 0, 8, 32},
    {FieldRole::Sign, 272, 8, 4, 8, 0, 0, 8, 32}, {FieldRole::Index, 528, 2, 4, 2, 0, 8, 8, 8},
    {FieldRole::Sub, 592, 4, 16, 4, 0, 0},
};

static void decode(const uint8_t *block, float *out) {
  float d = loadHalf(block);
  for (int i = 0; i < 256; ++i) {
    int group = i / 8;
    int index = block[2 + group] | (block[66 + group / 4] >> group % 4 * 2 & 3) << 8;
    float step = d * (0.5f + (block[74 + i / 32] >> i / 16 % 2 * 4 & 15)) * 0.25f;
    int value = gridValue(kGrid1024, kThreeSizes, 8, index, i % 8);
    *out++ = step * (block[34 + group] >> i % 8 & 1 ? -value : value);
  }
}

static constexpr Grid grid = {
    .groupWeights = 8, .entries = kGrid1024, .values = kThreeSizes, .signBits = 8};

static constexpr FormatSpec spec = {
    .name = "iq2_s",
    .ggufType = 22,
    .blockWeights = 256,
    .blockBytes = 82,
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
const FormatSpec &iq2_s() { return spec; }
} // namespace izhc::formats
