// BF16: the upper half of an IEEE single.

#include "compiler/formats/Float.h"

using namespace izhc;
using namespace izhc::formats;

static void decode(const uint8_t *block, float *out) {
  *out = floatFromBits(static_cast<uint32_t>(load16(block)) << 16);
}

static constexpr FormatSpec spec = {
    .name = "bf16",
    .ggufType = 30,
    .kind = ElementKind::BF16,
    .blockBytes = 2,
    .decodeBlock = decode,
};

namespace izhc::formats {
const FormatSpec &bf16() { return spec; }
} // namespace izhc::formats
