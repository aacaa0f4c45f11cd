// TQ1_0: 256 weights of three values, w = d * (q - 1), five in a byte: q of
// place n is the integer part of 3 * (3^n * byte / 256 less its own integer part).
//   byte 0: 32 bytes: place n of byte i is weight 32n + i; 32: 16 bytes: weight
//   160 + 16n + i; 48: 4 bytes of four: weight 240 + 4n + i; 52: d (float16)

#include "compiler/formats/Float.h"
#include "compiler/formats/Grids.h"

using namespace izhc;
using namespace izhc::formats;

static const BitField fields[] = {
    // role, firstBit, width, count, bitStride, firstElement, shift, repeats, repeatStride
    {FieldRole::Index, 0, 8, 52, 8, 0, 0},
    {FieldRole::Scale, 416, 16, 1, 0, 0, 0},
};

static void decode(const uint8_t *block, float *out) {
  static constexpr uint8_t kPowers[] = {1, 3, 9, 27, 81};
  float d = loadHalf(block + 52);
  auto weights = [&](const uint8_t *bytes, int count, int places) {
    for (int n = 0; n < places; ++n)
      for (int i = 0; i < count; ++i) {
        uint8_t rest = static_cast<uint8_t>(bytes[i] * kPowers[n]);
        *out++ = d * ((rest * 3 >> 8) - 1);
      }
  };
  weights(block, 32, 5);
  weights(block + 32, 16, 5);
  weights(block + 48, 4, 4);
}

static constexpr Grid grid = {.groupWeights = 5};

static constexpr FormatSpec spec = {
    .name = "tq1_0",
    .ggufType = 34,
    .blockWeights = 256,
    .blockBytes = 54,
    .fields = fields,
    .grid = &grid,
    .zeroPoint = 1,
    .decodeBlock = decode,
};

namespace izhc::formats {
const FormatSpec &tq1_0() { return spec; }
} // namespace izhc::formats
