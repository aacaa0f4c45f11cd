// Q6_K: 256 weights in 16 sub-blocks of 16, w = d * scale * (q - 32).
//   byte 0: bits 0..3 of q (128 bytes), 128: bits 4..5 (64 bytes), 192:
//   scales[16] (int8), 208: d (float16). In half n (128 weights), byte i of
//   32: low[64n + i] holds weights i (low nibble) and i + 64 (high),
//   low[64n + 32 + i] holds i + 32 and i + 96; high[32n + i] holds, from the
//   lowest bits on, weights i, i + 32, i + 64, i + 96.

#include "compiler/formats/Float.h"

using namespace izhc;
using namespace izhc::formats;

static const BitField fields[] = {
    // role, firstBit, width, count, bitStride, firstElement, shift
    {FieldRole::Code, 0, 4, 32, 8, 0, 0},      {FieldRole::Code, 4, 4, 32, 8, 64, 0},
    {FieldRole::Code, 256, 4, 32, 8, 32, 0},   {FieldRole::Code, 260, 4, 32, 8, 96, 0},
    {FieldRole::Code, 512, 4, 32, 8, 128, 0},  {FieldRole::Code, 516, 4, 32, 8, 192, 0},
    {FieldRole::Code, 768, 4, 32, 8, 160, 0},  {FieldRole::Code, 772, 4, 32, 8, 224, 0},
    {FieldRole::Code, 1024, 2, 32, 8, 0, 4},   {FieldRole::Code, 1026, 2, 32, 8, 32, 4},
    {FieldRole::Code, 1028, 2, 32, 8, 64, 4},  {FieldRole::Code, 1030, 2, 32, 8, 96, 4},
    {FieldRole::Code, 1280, 2, 32, 8, 128, 4}, {FieldRole::Code, 1282, 2, 32, 8, 160, 4},
    {FieldRole::Code, 1284, 2, 32, 8, 192, 4}, {FieldRole::Code, 1286, 2, 32, 8, 224, 4},
    {FieldRole::Sub, 1536, 8, 16, 8, 0, 0},    {FieldRole::Scale, 1664, 16, 1, 0, 0, 0},
};

static void decode(const uint8_t *block, float *out) {
  float d = loadHalf(block + 208);
  for (int half = 0; half < 2; ++half) {
    const uint8_t *low = block + 64 * half, *high = block + 128 + 32 * half;
    const uint8_t *scales = block + 192 + 8 * half;
    for (int i = 0; i < 128; ++i) {
      uint8_t pair = low[i % 64];
      int code = (i < 64 ? pair & 15 : pair >> 4) | (high[i % 32] >> (i / 32 * 2) & 3) << 4;
      float step = d * static_cast<int8_t>(scales[i / 16]);
      *out++ = step * (code - 32);
    }
  }
}

static constexpr FormatSpec spec = {
    .name = "q6_k",
    .ggufType = 14,
    .blockWeights = 256,
    .blockBytes = 210,
    .fields = fields,
    .codeBits = 6,
    .zeroPoint = 32,
    .subWeights = 16,
    .subBits = 8,
    .signedSub = true,
    .decodeBlock = decode,
};

namespace izhc::formats {
const FormatSpec &q6_k() { return spec; }
} // namespace izhc::formats
