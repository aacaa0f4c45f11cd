// IQ1_S: 256 weights in 8 sub-blocks of 32, w = d / 8 * (2 s + 1) * (8 grid +- 1).
//   byte 0: d (float16), 2: bits 0..7 of 32 indices of 8 weights, 34: of each
//   sub-block 16 bits: 4 times bits 8..10 of an index, s (3 bits), and whether
//   1 is subtracted

#include "compiler/formats/Float.h"
#include "compiler/formats/Grids.h"

using namespace izhc;
using namespace izhc::formats;

static const BitField fields[] = {
    // role, firstBit, width, count, bitStride, firstElement, shift, repeats, repeatStride
    {FieldRole::Scale, 0, 16, 1, 0, 0, 0},         {FieldRole::Index, 16, 8, 4, 8, 0, 0, 8, 32},
    {FieldRole::Index, 272, 3, 4, 3, 0, 8, 8, 16}, {FieldRole::Sub, 284, 3, 1, 0, 0, 0, 8, 16},
    {FieldRole::Delta, 287, 1, 1, 0, 0, 0, 8, 16},
};

static void decode(const uint8_t *block, float *out) {
  float d = loadHalf(block);
  for (int i = 0; i < 256; ++i) {
    uint32_t word = load16(block + 34 + i / 32 * 2);
    int index = block[2 + i / 8] | (word >> i / 8 % 4 * 3 & 7) << 8;
    float step = d * (2 * (word >> 12 & 7) + 1);
    float delta = word >> 15 ? -0.125f : 0.125f;
    *out++ = step * (gridValue(kGridTernary, kThreeSigns, 8, index, i % 8) + delta);
  }
}

static constexpr Grid grid = {.groupWeights = 8,
                              .entries = kGridTernary,
                              .values = kThreeSigns,
                              .multiplier = 8,
                              .deltaWeights = 32};

static constexpr FormatSpec spec = {
    .name = "iq1_s",
    .ggufType = 19,
    .blockWeights = 256,
    .blockBytes = 50,
    .fields = fields,
    .grid = &grid,
    .zeroPoint = 9,
    .factor = 0.125f,
    .subWeights = 32,
    .subBits = 3,
    .subStep = 2,
    .subZero = -1,
    .decodeBlock = decode,
};

namespace izhc::formats {
const FormatSpec &iq1_s() { return spec; }
} // namespace izhc::formats
