// Blocks with sub-blocks: the best scale of every sub-block, as multiples of
// one number; then these multiples and that number in turn, each as good as it
// can be for the other. Only for this folder.

#pragma once

#include "compiler/formats/Fit.h"
#include "compiler/formats/Float.h"
#include "compiler/formats/RawBlock.h"
#include <cmath>
#include <type_traits>

namespace izhc::formats {

// As many blocks as have their sub-blocks in the lanes. Sub-scales are kept as
// the integers that multiply (less subZero).
template <bool kWeighed, typename Codes> class SuperBlocks {
public:
  IZH_ALWAYS_INLINE SuperBlocks(const FormatSpec &format, const Groups<kWeighed> &groups,
                                const Codes &codes)
      : format(format), groups(groups), codes(codes), subs(int(format.blockWeights) / groups.count),
        count(kLanes / subs) {
    int half = 1 << (format.subBits - 1);
    bool isSigned = format.signedSub || format.subZero;
    subLow = float(isSigned ? -half : 0);
    subHigh = float(isSigned ? half - 1 : (1 << format.subBits) - 1);
  }

  // Fills in all parts of the blocks but the codes, which it writes to `to`.
  IZH_ALWAYS_INLINE void encode(RawBlock *raws, Bytes *to) {
    findScales();
    if (format.hasMin)
      plain = plainSumsOf(groups);
    chooseSubs(format.hasMin ? std::size(kNeighbours) : kAlongScale);
    refitScales();
    chooseSubs(format.hasMin ? kAlongBoth : kAlongScale);
    refitScales();
    storeCodes(groups, codes, line(sub, subMin), to);
    storeScales(raws);
  }

private:
  // How far integers are from those that a sub-block has: those with a minimum
  // try first one of both, then both.
  struct Neighbour {
    float sub, min;
  };
  static constexpr Neighbour kNeighbours[] = {{-1, 0},  {1, 0},  {0, -1}, {0, 1},
                                              {-1, -1}, {-1, 1}, {1, -1}};
  static constexpr size_t kAlongScale = 2, kAlongBoth = 4;

  IZH_ALWAYS_INLINE Ints lanesOf(int block) const {
    constexpr Ints kNumbers = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return (kNumbers >= block * subs) & (kNumbers < (block + 1) * subs);
  }

  template <typename Vector> IZH_ALWAYS_INLINE double total(Vector values, int block) const {
    double sum = 0;
    for (int lane = block * subs; lane < (block + 1) * subs; ++lane)
      sum += values[lane];
    return sum;
  }

  // As halves hold them.
  IZH_ALWAYS_INLINE void setScales(int block, float step, float base) {
    Ints lanes = lanesOf(block);
    scales.step = lanes ? splat(halfToFloat(finiteHalf(step))) : scales.step;
    scales.base = lanes ? splat(halfToFloat(finiteHalf(base))) : scales.base;
  }

  // What these integers make of the blocks' scales.
  IZH_ALWAYS_INLINE Line line(Floats subs, Floats mins) const {
    return {scales.step * subs, -(scales.base * mins)};
  }

  IZH_ALWAYS_INLINE Line fit() const {
    if constexpr (std::is_same_v<Codes, Range>)
      if (format.hasMin)
        return fitLine(groups, codes, /*below=*/true);
    return {fitScale(groups, codes)};
  }

  // The integers up to subHigh that take `step` nearest to the values.
  IZH_ALWAYS_INLINE Floats multiples(Floats values, Floats step, float least) const {
    return where(step != 0, rounded(clamped(values / step, least, subHigh)));
  }

  // The best of each sub-block, and the numbers that they are multiples of.
  IZH_ALWAYS_INLINE void findScales() {
    Line best = fit();
    for (int block = 0; block < count; ++block) {
      float most = 0, least = 0;
      for (int lane = block * subs; lane < (block + 1) * subs; ++lane) {
        if (std::abs(best.step[lane]) > std::abs(most))
          most = best.step[lane];
        least = std::min(least, best.base[lane]);
      }
      // The largest takes the end of the integers that reaches further.
      setScales(block, most / (subLow < 0 ? subLow : subHigh), -least / subHigh);
    }
    sub = multiples(best.step, scales.step, subLow);
    subMin = multiples(-best.base, scales.base, 0);
    error = errorOf(groups, codes, line(sub, subMin));
  }

  // Each sub-block's integers, among the first neighbours of those it has.
  IZH_ALWAYS_INLINE void chooseSubs(size_t neighbours) {
    Floats from = sub, fromMin = subMin;
    for (size_t i = 0; i < neighbours; ++i) {
      Floats newSub = from + kNeighbours[i].sub, newMin = fromMin + kNeighbours[i].min;
      Floats now = errorOf(groups, codes, line(newSub, newMin));
      Ints better = (newSub >= subLow) & (newSub <= subHigh) & (newMin >= 0) & (newMin <= subHigh) &
                    (now < error);
      sub = better ? newSub : sub;
      subMin = better ? newMin : subMin;
      error = better ? now : error;
    }
  }

  // The blocks' scales as the least squares of all their sub-blocks have them,
  // where that makes them better.
  IZH_ALWAYS_INLINE void refitScales() {
    Line old = line(sub, subMin), before = scales;
    Sums sums = sumsOf(groups, codes, old.inverse(), old.base);
    Doubles a = wide(sub), b = -wide(subMin);
    Doubles aa = a * a * wide(sums.qq), xa = a * wide(sums.xq), ab = a * b * wide(sums.q);
    Doubles bb = b * b * wide(plain.one), xb = b * wide(plain.x);
    for (int block = 0; block < count; ++block)
      solve(block, total(aa, block), total(ab, block), total(bb, block), total(xa, block),
            total(xb, block));
    Floats now = errorOf(groups, codes, line(sub, subMin));
    for (int block = 0; block < count; ++block) {
      Ints lanes = lanesOf(block);
      if (total(now, block) < total(error, block)) {
        error = lanes ? now : error;
        continue;
      }
      scales.step = lanes ? before.step : scales.step;
      scales.base = lanes ? before.base : scales.base;
    }
  }

  // The scale and the minimum with the least error, given sums over the block.
  IZH_ALWAYS_INLINE void solve(int block, double aa, double ab, double bb, double xa, double xb) {
    double determinant = aa * bb - ab * ab;
    if (determinant > 1e-12 * aa * bb)
      setScales(block, float((bb * xa - ab * xb) / determinant),
                float((aa * xb - ab * xa) / determinant));
    else if (!(bb > 0))
      setScales(block, float(aa > 0 ? xa / aa : 0), 0);
  }

  IZH_ALWAYS_INLINE void storeScales(RawBlock *raws) const {
    int mask = (1 << format.subBits) - 1;
    for (int lane = 0; lane < kLanes; ++lane) {
      RawBlock &raw = raws[lane / subs];
      raw.sub[lane % subs] = static_cast<uint8_t>((int(sub[lane]) + format.subZero) & mask);
      raw.subMin[lane % subs] = static_cast<uint8_t>(subMin[lane]);
    }
    for (int block = 0; block < count; ++block) {
      raws[block].scale = floatToHalf(scales.step[block * subs]);
      raws[block].min = floatToHalf(scales.base[block * subs]);
    }
  }

  const FormatSpec &format;
  const Groups<kWeighed> &groups;
  const Codes &codes;
  int subs, count;
  float subLow, subHigh;
  // What the blocks' integers multiply, the same in all lanes of a block.
  Line scales;
  Floats sub = {}, subMin = {}, error = {};
  PlainSums plain;
};

} // namespace izhc::formats
