// Blocks of 32: the best scale (and minimum), rounded as it is stored, then
// the nearest codes. Blocks of 256: the best scale of every sub-block, as
// multiples of one number; then these multiples and that number in turn, each
// as good as it can be for the other.

#include "compiler/formats/Encode.h"
#include "compiler/formats/Fit.h"
#include "compiler/formats/RawBlock.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>

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
// One scale a block
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

// The nearest half that is not infinite.
static uint16_t halfOf(float value) { return floatToHalf(std::clamp(value, -65504.0f, 65504.0f)); }

namespace {
// The smallest and the largest code less the zero point.
struct Range {
  int low, high;

  explicit Range(const FormatSpec &format) {
    low = format.signedCodes ? -127 : -format.zeroPoint;
    high = format.signedCodes ? 127 : (1 << format.codeBits) - 1 - format.zeroPoint;
  }
};
} // namespace

static void encodeScaled(const FormatSpec &format, const Group &group, RawBlock &raw) {
  Range range(format);
  raw.scale = halfOf(fitScale(group, range.low, range.high));
  encodeLine(group, halfToFloat(raw.scale), 0, range.low, range.high, raw.code);
  if (format.signedCodes)
    for (uint32_t i = 0; i < format.blockWeights; ++i)
      raw.code[i] = static_cast<uint8_t>(raw.code[i] + range.low);
}

static void encodeWithMinimum(const FormatSpec &format, const Group &group, RawBlock &raw) {
  int levels = (1 << format.codeBits) - 1;
  Line line = fitLine(group, levels, /*below=*/false);
  raw.scale = halfOf(line.step);
  raw.min = halfOf(line.base);
  encodeLine(group, halfToFloat(raw.scale), halfToFloat(raw.min), 0, levels, raw.code);
}

static void encodeWithBook(const FormatSpec &format, const Group &group, RawBlock &raw) {
  raw.scale = halfOf(fitBookScale(group, format.codebook));
  encodeBook(group, halfToFloat(raw.scale), format.codebook, raw.code);
}

// Scales are powers of two: those that take the largest weight near the
// largest code are tried. The codebook need not be in order.
static void encodePowerOfTwo(const FormatSpec &format, const Group &group, RawBlock &raw) {
  float extreme = 0;
  for (int i = 0; i < group.count; ++i)
    extreme = std::max(extreme, std::abs(group.x[i]));
  int most = 0;
  for (int8_t code : format.codebook)
    most = std::max(most, std::abs(code - format.zeroPoint));
  int exponent = extreme > 0 ? std::ilogb(extreme / (format.factor * most)) : -127;
  // Squares of weights that the format holds are beyond float32.
  double best = INFINITY;
  for (int e = exponent - 1; e <= exponent + 1; ++e) {
    int bits = std::clamp(e + 127, 0, 254);
    double scale = std::ldexp(double(format.factor), bits - 127), error = 0;
    uint8_t codes[256];
    for (int i = 0; i < group.count; ++i) {
      double least = INFINITY;
      for (size_t code = 0; code < format.codebook.size(); ++code) {
        double rest = group.x[i] - scale * (format.codebook[code] - format.zeroPoint);
        if (rest * rest < least) {
          least = rest * rest;
          codes[i] = static_cast<uint8_t>(code);
        }
      }
      error += group.w[i] * least;
    }
    if (error < best) {
      best = error;
      raw.scale = static_cast<uint16_t>(bits);
      std::memcpy(raw.code, codes, group.count);
    }
  }
}

//===----------------------------------------------------------------------===//
// Sub-blocks
//===----------------------------------------------------------------------===//

namespace {
// A block of 256 under way. Sub-scales are kept as the integers that multiply
// (less subZero).
class SuperBlock {
public:
  SuperBlock(const FormatSpec &format, const Group &all) : format(format), range(format) {
    uint32_t width = format.subWeights ? format.subWeights : 256;
    count = int(format.blockWeights / width);
    for (int j = 0; j < count; ++j)
      groups[j] = {all.x + j * width, all.w + j * width, int(width)};
    int half = 1 << (format.subBits ? format.subBits - 1 : 0);
    bool isSigned = format.signedSub || format.subZero;
    subLow = isSigned ? -half : 0;
    subHigh = isSigned ? half - 1 : (1 << format.subBits) - 1;
  }

  void encode(RawBlock &raw) {
    findScales();
    for (int round = 0; round < 2; ++round) {
      double before = error;
      chooseSubs(/*diagonals=*/round == 0);
      refitScale();
      if (round && !(error < before))
        break;
    }
    write(raw);
  }

private:
  void findScales();
  // How far integers are from those that a sub-block has.
  struct Neighbour {
    int sub, min;
  };
  void neighbourErrors(int j, llvm::ArrayRef<Neighbour> neighbours, float *errors) const;
  void chooseSubs(bool diagonals);
  void refitScale();
  void write(RawBlock &raw);
  double encodeAll(uint8_t (*into)[256], float d, float dmin);
  float encodeSub(int j, float scale, float base, uint8_t *codes) const;

  const FormatSpec &format;
  Range range;
  Group groups[16];
  int count, subLow, subHigh;
  float scales[16] = {}, bases[16] = {};
  int sub[16] = {}, subMin[16] = {};
  uint16_t d = 0, dmin = 0;
  uint8_t codes[256] = {};
  double error = INFINITY;
};
} // namespace

float SuperBlock::encodeSub(int j, float scale, float base, uint8_t *into) const {
  if (!format.codebook.empty())
    return encodeBook(groups[j], scale, format.codebook, into);
  return encodeLine(groups[j], scale, -base, range.low, range.high, into);
}

// The best of each sub-block, and the number that they are multiples of.
void SuperBlock::findScales() {
  float most = 0, mostBase = 0;
  for (int j = 0; j < count; ++j) {
    if (format.hasMin) {
      Line line = fitLine(groups[j], range.high, /*below=*/true);
      scales[j] = line.step;
      bases[j] = -line.base;
    } else if (!format.codebook.empty()) {
      scales[j] = fitBookScale(groups[j], format.codebook);
    } else {
      scales[j] = fitScale(groups[j], range.low, range.high);
    }
    if (std::abs(scales[j]) > std::abs(most))
      most = scales[j];
    mostBase = std::max(mostBase, bases[j]);
  }
  // The largest takes the end of the integers that reaches further.
  d = halfOf(most / (subLow < 0 ? subLow : subHigh));
  dmin = halfOf(mostBase / subHigh);
  float step = halfToFloat(d), base = halfToFloat(dmin);
  for (int j = 0; j < count; ++j) {
    sub[j] = step != 0 ? std::clamp(int(std::lrint(scales[j] / step)), subLow, subHigh) : 0;
    subMin[j] = base != 0 ? std::clamp(int(std::lrint(bases[j] / base)), 0, subHigh) : 0;
  }
}

// The errors of sub-block j for integers next to sub[j] and subMin[j].
void SuperBlock::neighbourErrors(int j, llvm::ArrayRef<Neighbour> neighbours, float *errors) const {
  float step = halfToFloat(d), base = halfToFloat(dmin);
  // Three would leave most lanes idle.
  if (!format.hasMin) {
    for (size_t i = 0; i < neighbours.size(); ++i)
      errors[i] = encodeSub(j, step * (sub[j] + neighbours[i].sub), 0, nullptr);
    return;
  }
  float steps[kLanes] = {}, bases[kLanes] = {};
  for (size_t i = 0; i < neighbours.size(); ++i) {
    steps[i] = step * (sub[j] + neighbours[i].sub);
    bases[i] = -base * (subMin[j] + neighbours[i].min);
  }
  lineErrors(groups[j], steps, bases, range.low, range.high, errors);
}

// Each sub-block's integers, among the neighbours of those it has.
void SuperBlock::chooseSubs(bool diagonals) {
  // Those with a minimum: first the four that differ in one, then diagonals, as
  // many as are tried at once.
  static constexpr Neighbour kAll[] = {{0, 0}, {-1, 0},  {1, 0},  {0, -1},
                                       {0, 1}, {-1, -1}, {-1, 1}, {1, -1}};
  static_assert(std::size(kAll) == kLanes);
  llvm::ArrayRef<Neighbour> neighbours(kAll, !format.hasMin ? 3 : diagonals ? 8 : 5);
  float step = halfToFloat(d), base = halfToFloat(dmin);
  error = 0;
  for (int j = 0; j < count; ++j) {
    float errors[kLanes], best = INFINITY;
    neighbourErrors(j, neighbours, errors);
    Neighbour chosen = {0, 0};
    for (size_t i = 0; i < neighbours.size(); ++i) {
      int s = sub[j] + neighbours[i].sub, m = subMin[j] + neighbours[i].min;
      if (s < subLow || s > subHigh || m < 0 || m > subHigh || !(errors[i] < best))
        continue;
      best = errors[i];
      chosen = neighbours[i];
    }
    sub[j] += chosen.sub;
    subMin[j] += chosen.min;
    error += encodeSub(j, step * sub[j], base * subMin[j], codes + j * groups[j].count);
  }
}

// d and dmin as the least squares of all sub-blocks have them.
void SuperBlock::refitScale() {
  double aa = 0, ab = 0, bb = 0, xa = 0, xb = 0;
  for (int j = 0; j < count; ++j) {
    uint8_t values[256];
    const uint8_t *from = codes + j * groups[j].count;
    int low = range.low;
    if (!format.codebook.empty()) {
      low = format.codebook.front();
      for (int i = 0; i < groups[j].count; ++i)
        values[i] = static_cast<uint8_t>(format.codebook[from[i]] - low);
      from = values;
    }
    Moments m = momentsOf(groups[j], from, low);
    double s = sub[j], b = -subMin[j];
    aa += s * s * m.qq;
    ab += s * b * m.q;
    bb += b * b * m.one;
    xa += s * m.xq;
    xb += b * m.x;
  }
  double step = aa > 0 ? xa / aa : 0, base = 0;
  if (double determinant = aa * bb - ab * ab; determinant > 1e-12 * aa * bb) {
    step = (bb * xa - ab * xb) / determinant;
    base = (aa * xb - ab * xa) / determinant;
  } else if (bb > 0) {
    return;
  }
  uint16_t newD = halfOf(float(step)), newMin = halfOf(float(base));
  uint8_t fresh[256];
  double now = 0;
  for (int j = 0; j < count; ++j)
    now += encodeSub(j, halfToFloat(newD) * sub[j], halfToFloat(newMin) * subMin[j],
                     fresh + j * groups[j].count);
  if (now < error) {
    error = now;
    d = newD;
    dmin = newMin;
    std::memcpy(codes, fresh, sizeof(codes));
  }
}

void SuperBlock::write(RawBlock &raw) {
  raw.scale = d;
  raw.min = dmin;
  std::memcpy(raw.code, codes, sizeof(codes));
  uint32_t mask = (1u << format.subBits) - 1;
  for (int j = 0; j < count; ++j) {
    raw.sub[j] = static_cast<uint8_t>((sub[j] + format.subZero) & mask);
    raw.subMin[j] = static_cast<uint8_t>(subMin[j]);
  }
}

void izhc::encodeBlock(const FormatSpec &format, const float *weights, const float *importance,
                       uint8_t *block) {
  assert(canEncode(format) && "there is no encoder for this format");
  if (format.kind != ElementKind::Quantized)
    return encodeFloat(format, *weights, block);
  float alike[256];
  std::fill_n(alike, format.blockWeights, 1.0f);
  // Where nothing matters, everything does alike.
  bool matters = importance && std::any_of(importance, importance + format.blockWeights,
                                           [](float value) { return value > 0; });
  Group group = {weights, matters ? importance : alike, int(format.blockWeights)};
  RawBlock raw = {};
  if (format.scaleKind == ScaleKind::PowerOfTwo)
    encodePowerOfTwo(format, group, raw);
  else if (format.subWeights)
    SuperBlock(format, group).encode(raw);
  else if (format.hasMin)
    encodeWithMinimum(format, group, raw);
  else if (!format.codebook.empty())
    encodeWithBook(format, group, raw);
  else
    encodeScaled(format, group, raw);
  writeRaw(format, raw, block);
}
