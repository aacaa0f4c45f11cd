// Which blocks are encoded together.

#include "compiler/formats/Encode.h"
#include "compiler/formats/EncodeGroups.h"
#include "compiler/formats/RawBlock.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

using namespace izhc;
using namespace izhc::formats;

bool izhc::canEncode(const FormatSpec &format) {
  if (format.kind != ElementKind::Quantized)
    return true;
  return !format.grid && format.scaleKind != ScaleKind::PerSub &&
         (format.blockWeights == 32 || format.subWeights);
}

// The largest finite half and, as other programs have it too, bfloat16.
static constexpr double kLargestHalf = 65504, kLargestBfloat = 0x1.fep127;

double izhc::largestWeight(const FormatSpec &format) {
  switch (format.kind) {
  case ElementKind::F32:
    return std::numeric_limits<float>::max();
  case ElementKind::F16:
    return kLargestHalf;
  case ElementKind::BF16:
    return kLargestBfloat;
  case ElementKind::Quantized:
    break;
  }
  double codes = (1 << format.codeBits) - 1 - format.zeroPoint;
  if (format.signedCodes)
    codes = 127;
  else if (format.zeroPoint)
    codes = std::min<double>(codes, format.zeroPoint);
  if (!format.codebook.empty()) {
    auto [low, high] = std::minmax_element(format.codebook.begin(), format.codebook.end());
    codes = std::min(*high - format.zeroPoint, format.zeroPoint - *low);
  }
  if (format.scaleKind == ScaleKind::PowerOfTwo)
    // Beyond, the nearest code may mean more than float32 holds.
    return std::min(std::ldexp(format.factor * codes, 127), 0x1.8p127);
  double subs = 1;
  if (format.subWeights) {
    bool isSigned = format.signedSub || format.subZero;
    subs = (1 << (format.subBits - isSigned)) - 1;
  }
  // Codes of formats with a minimum count up from it, and a minimum has no codes.
  return kLargestHalf * subs * (format.hasMin ? 1 : codes);
}

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

static uint16_t bfloatOf(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static void encodeFloat(const FormatSpec &format, float value, uint8_t *block) {
  uint16_t half = format.kind == ElementKind::BF16 ? bfloatOf(value) : floatToHalf(value);
  if (format.kind == ElementKind::F32)
    std::memcpy(block, &value, 4);
  else
    std::memcpy(block, &half, 2);
}

//===----------------------------------------------------------------------===//
// Many blocks
//===----------------------------------------------------------------------===//

namespace {
// Encodes as many blocks at once as have their groups in the lanes: a group is
// a sub-block, or a block that has none.
class Batch {
public:
  explicit Batch(const FormatSpec &format)
      : format(format), width(int(format.subWeights ? format.subWeights : format.blockWeights)),
        most(kLanes * width / format.blockWeights) {}

  // At most `most` blocks.
  void encode(const float *weights, const float *importance, int64_t count, uint8_t *blocks);

  const FormatSpec &format;
  const int width;
  const int64_t most;

private:
  const float *whole(const float *values, int64_t count);
  void setImportance(const float *importance, int64_t count);
  void encodeAs(const Floats *weighed, int64_t count, uint8_t *blocks);
  double errorOf(const uint8_t *block, const float *weights, const float *importance) const;

  Floats x[kMostGroup], w[kMostGroup];
  Bytes codes[kMostGroup];
  uint8_t stored[kLanes * kMostGroup];
  float padded[kLanes * kMostGroup];
  RawBlock raws[kLanes] = {};
  // No format takes more than float32 does.
  uint8_t weighed[4 * kLanes * kMostGroup];
};
} // namespace

// `values` of `count` blocks, and zeros up to those of a whole batch.
const float *Batch::whole(const float *values, int64_t count) {
  if (count == most)
    return values;
  std::fill(padded, std::end(padded), 0.0f);
  std::copy_n(values, count * format.blockWeights, padded);
  return padded;
}

// What matters least matters this much of what matters most: nothing is left to
// chance, and sums stay within float32.
static constexpr float kLeastImportance = 0x1p-24f;

// In multiples of the power of two below the block's largest, as only ratios
// count. In blocks where nothing matters, everything does alike.
void Batch::setImportance(const float *importance, int64_t count) {
  std::copy_n(whole(importance, count), kLanes * width, padded);
  for (int64_t block = 0; block < most; ++block) {
    float *values = padded + block * format.blockWeights, *end = values + format.blockWeights;
    // Bits of what is at least 0 are in the order of values.
    int32_t bits = 0;
    for (const float *value = values; value < end; ++value)
      bits = std::max(bits, std::bit_cast<int32_t>(*value));
    float largest = std::bit_cast<float>(bits);
    if (!(largest > 0)) {
      std::fill(values, end, 1.0f);
      continue;
    }
    double scale = std::ldexp(1.0, -std::ilogb(largest));
    std::transform(values, end, values, [&](float value) {
      return std::max(static_cast<float>(value * scale), kLeastImportance);
    });
  }
  sideBySide(padded, width, w);
}

void Batch::encodeAs(const Floats *weighed, int64_t count, uint8_t *blocks) {
  encodeGroups(format, x, weighed, width, raws, codes);
  oneByOne(codes, width, stored);
  for (int64_t block = 0; block < count; ++block) {
    std::memcpy(raws[block].code, stored + block * format.blockWeights, format.blockWeights);
    writeRaw(format, raws[block], blocks + block * format.blockBytes);
  }
}

double Batch::errorOf(const uint8_t *block, const float *weights, const float *importance) const {
  float got[256];
  format.decodeBlock(block, got);
  // Sums side by side, which fit into vectors.
  constexpr uint32_t kSums = 8;
  double errors[kSums] = {};
  for (uint32_t i = 0; i < format.blockWeights; i += kSums)
    for (uint32_t k = 0; k < kSums; ++k) {
      double rest = double(weights[i + k]) - got[i + k];
      errors[k] += importance[i + k] * rest * rest;
    }
  return std::accumulate(errors, std::end(errors), 0.0);
}

void Batch::encode(const float *weights, const float *importance, int64_t count, uint8_t *blocks) {
  sideBySide(whole(weights, count), width, x);
  encodeAs(nullptr, count, blocks);
  if (!importance)
    return;
  // The search may end beside the best: what it finds with importance is taken
  // where it is better.
  setImportance(importance, count);
  encodeAs(w, count, weighed);
  for (int64_t block = 0; block < count; ++block) {
    const float *own = weights + block * format.blockWeights;
    const float *matters = importance + block * format.blockWeights;
    uint8_t *to = blocks + block * format.blockBytes, *other = weighed + block * format.blockBytes;
    if (errorOf(other, own, matters) <= errorOf(to, own, matters))
      std::memcpy(to, other, format.blockBytes);
  }
}

void izhc::encodeBlocks(const FormatSpec &format, const float *weights, const float *importance,
                        int64_t count, uint8_t *blocks) {
  assert(canEncode(format) && "there is no encoder for this format");
  if (format.kind != ElementKind::Quantized) {
    for (int64_t i = 0; i < count; ++i)
      encodeFloat(format, weights[i], blocks + i * format.blockBytes);
    return;
  }
  Batch batch(format);
  for (int64_t block = 0; block < count; block += batch.most) {
    int64_t first = block * format.blockWeights;
    batch.encode(weights + first, importance ? importance + first : nullptr,
                 std::min(batch.most, count - block), blocks + block * format.blockBytes);
  }
}
