// F16: IEEE half precision.

#include "compiler/formats/Float.h"

using namespace izhc;
using namespace izhc::formats;

static void decode(const uint8_t *block, float *out) { *out = loadHalf(block); }

static constexpr FormatSpec spec = {
    .name = "f16",
    .ggufType = 1,
    .kind = ElementKind::F16,
    .blockBytes = 2,
    .decodeBlock = decode,
};

namespace izhc::formats {
const FormatSpec &f16() { return spec; }
} // namespace izhc::formats
