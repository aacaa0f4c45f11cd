// F32: plain IEEE single precision.

#include "compiler/formats/Float.h"

using namespace izhc;
using namespace izhc::formats;

static void decode(const uint8_t *block, float *out) { *out = floatFromBits(load32(block)); }

static constexpr FormatSpec spec = {
    .name = "f32",
    .ggufType = 0,
    .kind = ElementKind::F32,
    .blockBytes = 4,
    .decodeBlock = decode,
};

namespace izhc::formats {
const FormatSpec &f32() { return spec; }
} // namespace izhc::formats
