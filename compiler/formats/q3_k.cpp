// Q3_K: 256 weights in 16 sub-blocks of 16, w = d * (scale - 32) * (q - 4).
//   byte 0: bit 2 of q (32 bytes): bit j of byte i belongs to weight 32j + i;
//   32: bits 0..1 of q (64 bytes): in half n (128 weights), bits 2j..2j+1 of
//   byte 32n + i belong to weight 128n + 32j + i; 96: six-bit scales (12
//   bytes): low nibbles of bytes 0..7 are bits 0..3 of scales 0..7, high
//   nibbles of scales 8..15; bits 2g..2g+1 of byte 8 + i are bits 4..5 of
//   scale 4g + i; 108: d (float16)

#include "compiler/formats/Float.h"

using namespace izhc;
using namespace izhc::formats;

static const BitField fields[] = {
    // role, firstBit, width, count, bitStride, firstElement, shift
    {FieldRole::Code, 256, 2, 32, 8, 0, 0},   {FieldRole::Code, 258, 2, 32, 8, 32, 0},
    {FieldRole::Code, 260, 2, 32, 8, 64, 0},  {FieldRole::Code, 262, 2, 32, 8, 96, 0},
    {FieldRole::Code, 512, 2, 32, 8, 128, 0}, {FieldRole::Code, 514, 2, 32, 8, 160, 0},
    {FieldRole::Code, 516, 2, 32, 8, 192, 0}, {FieldRole::Code, 518, 2, 32, 8, 224, 0},
    {FieldRole::Code, 0, 1, 32, 8, 0, 2},     {FieldRole::Code, 1, 1, 32, 8, 32, 2},
    {FieldRole::Code, 2, 1, 32, 8, 64, 2},    {FieldRole::Code, 3, 1, 32, 8, 96, 2},
    {FieldRole::Code, 4, 1, 32, 8, 128, 2},   {FieldRole::Code, 5, 1, 32, 8, 160, 2},
    {FieldRole::Code, 6, 1, 32, 8, 192, 2},   {FieldRole::Code, 7, 1, 32, 8, 224, 2},
    {FieldRole::Sub, 768, 4, 8, 8, 0, 0},     {FieldRole::Sub, 772, 4, 8, 8, 8, 0},
    {FieldRole::Sub, 832, 2, 4, 8, 0, 4},     {FieldRole::Sub, 834, 2, 4, 8, 4, 4},
    {FieldRole::Sub, 836, 2, 4, 8, 8, 4},     {FieldRole::Sub, 838, 2, 4, 8, 12, 4},
    {FieldRole::Scale, 864, 16, 1, 0, 0, 0},
};

static void decode(const uint8_t *block, float *out) {
  const uint8_t *high = block, *low = block + 32, *scales = block + 96;
  float d = loadHalf(block + 108);
  for (int i = 0; i < 256; ++i) {
    int sub = i / 16, part = i / 32;
    int scale = (sub < 8 ? scales[sub] & 15 : scales[sub - 8] >> 4) |
                (scales[8 + sub % 4] >> (2 * (sub / 4)) & 3) << 4;
    int code = (low[32 * (i / 128) + i % 32] >> (2 * (part % 4)) & 3) | (high[i % 32] >> part & 1)
                                                                            << 2;
    float step = d * (scale - 32);
    *out++ = step * (code - 4);
  }
}

static constexpr FormatSpec spec = {
    .name = "q3_k",
    .ggufType = 11,
    .blockWeights = 256,
    .blockBytes = 110,
    .fields = fields,
    .codeBits = 3,
    .zeroPoint = 4,
    .subWeights = 16,
    .subBits = 6,
    .subZero = 32,
    .decodeBlock = decode,
};

namespace izhc::formats {
const FormatSpec &q3_k() { return spec; }
} // namespace izhc::formats
