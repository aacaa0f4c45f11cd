// IQ2_XXS: 256 weights in 8 sub-blocks of 32, w = d / 8 * (2 s + 1) * +-grid.
//   byte 0: d (float16), 2: of each sub-block 4 indices of 8 weights (a byte
//   each), then 32 bits: 4 times 7 signs, then s (4 bits)

#include "compiler/formats/Float.h"
#include "compiler/formats/Grids.h"

using namespace izhc;
using namespace izhc::formats;

static const BitField fields[] = {
    // role, firstBit, width, count, bitStride, firstElement, shift, repeats, repeatStride
    {FieldRole::Scale, 0, 16, 1, 0, 0, 0},
    {FieldRole::Index, 16, 8, 4, 8, 0, 0, 8, 64},
    {FieldRole::Sign, 48, 7, 4, 7, 0, 0, 8, 64},
    {FieldRole::Sub, 76, 4, 1, 0, 0, 0, 8, 64},
};

static void decode(const uint8_t *block, float *out) {
  float d = loadHalf(block);
  for (int sub = 0; sub < 8; ++sub) {
    const uint8_t *indices = block + 2 + 8 * sub;
    uint32_t signs = load32(indices + 4);
    float step = d * (0.5f + (signs >> 28)) * 0.25f;
    for (int i = 0; i < 32; ++i) {
      int value = gridValue(kGrid256, kThreeSizes, 8, indices[i / 8], i % 8);
      *out++ = step * (evenSign(signs >> 7 * (i / 8) & 127, i % 8) ? -value : value);
    }
  }
}

static constexpr Grid grid = {
    .groupWeights = 8, .entries = kGrid256, .values = kThreeSizes, .signBits = 7};

static constexpr FormatSpec spec = {
    .name = "iq2_xxs",
    .ggufType = 16,
    .blockWeights = 256,
    .blockBytes = 66,
    .fields = fields,
    .grid = &grid,
    .zeroPoint = 43,
    .factor = 0.125f,
    .subWeights = 32,
    .subBits = 4,
    .subStep = 2,
    .subZero = -1,
    .decodeBlock = decode,
};

namespace izhc::formats {
const FormatSpec &iq2_xxs() { return spec; }
} // namespace izhc::formats
