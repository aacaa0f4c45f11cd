// IQ1_M: 256 weights in 16 sub-blocks of 16, w = d / 8 * (2 s + 1) * (8 grid +- 1).
//   byte 0: bits 0..7 of 32 indices of 8 weights, 32: of each 8 weights 4 bits:
//   bits 8..10 of the index and whether 1 is subtracted; 48: 4 words of 16 bits:
//   s of 4 sub-blocks (3 bits each) and 4 bits of d (float16), lowest first

#include "compiler/formats/Float.h"
#include "compiler/formats/Grids.h"

using namespace izhc;
using namespace izhc::formats;

static const BitField fields[] = {
    // role, firstBit, width, count, bitStride, firstElement, shift, repeats, repeatStride
    {FieldRole::Index, 0, 8, 4, 8, 0, 0, 8, 32},   {FieldRole::Index, 256, 3, 4, 4, 0, 8, 8, 16},
    {FieldRole::Delta, 259, 1, 4, 4, 0, 0, 8, 16}, {FieldRole::Sub, 384, 3, 4, 3, 0, 0, 4, 16},
    {FieldRole::Scale, 396, 4, 1, 0, 0, 0},        {FieldRole::Scale, 412, 4, 1, 0, 0, 4},
    {FieldRole::Scale, 428, 4, 1, 0, 0, 8},        {FieldRole::Scale, 444, 4, 1, 0, 0, 12},
};

static void decode(const uint8_t *block, float *out) {
  uint32_t bits = 0;
  for (int i = 0; i < 4; ++i)
    bits |= (load16(block + 48 + 2 * i) >> 12) << 4 * i;
  float d = halfToFloat(static_cast<uint16_t>(bits));
  for (int i = 0; i < 256; ++i) {
    uint32_t high = block[32 + i / 16] >> i / 8 % 2 * 4;
    int index = block[i / 8] | (high & 7) << 8;
    float step = d * (2 * (load16(block + 48 + i / 64 * 2) >> i / 16 % 4 * 3 & 7) + 1);
    float delta = high & 8 ? -0.125f : 0.125f;
    *out++ = step * (gridValue(kGridTernary, kThreeSigns, 8, index, i % 8) + delta);
  }
}

static constexpr Grid grid = {.groupWeights = 8,
                              .entries = kGridTernary,
                              .values = kThreeSigns,
                              .multiplier = 8,
                              .deltaWeights = 8};

static constexpr FormatSpec spec = {
    .name = "iq1_m",
    .ggufType = 29,
    .blockWeights = 256,
    .blockBytes = 56,
    .fields = fields,
    .grid = &grid,
    .zeroPoint = 9,
    .factor = 0.125f,
    .subWeights = 16,
    .subBits = 3,
    .subStep = 2,
    .subZero = -1,
    .decodeBlock = decode,
};

namespace izhc::formats {
const FormatSpec &iq1_m() { return spec; }
} // namespace izhc::formats
