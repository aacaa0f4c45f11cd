// Blocks without sub-blocks: the best scale (and minimum), rounded as it is
// stored, then the nearest codes. Others: SuperBlocks.h.

#include "compiler/formats/EncodeGroups.h"
#include "compiler/formats/SuperBlocks.h"

using namespace izhc;
using namespace izhc::formats;

template <bool kWeighed, typename Codes>
IZH_INLINE void encodePlain(const FormatSpec &format, const Groups<kWeighed> &groups,
                            const Codes &codes, RawBlock *raws, Bytes *to) {
  Line line;
  if constexpr (std::is_same_v<Codes, Range>)
    line = format.hasMin ? fitLine(groups, codes, /*below=*/false) : Line{fitScale(groups, codes)};
  else
    line.step = fitScale(groups, codes);
  for (int lane = 0; lane < kLanes; ++lane) {
    raws[lane].scale = finiteHalf(line.step[lane]);
    raws[lane].min = finiteHalf(line.base[lane]);
    line.step[lane] = halfToFloat(raws[lane].scale);
    line.base[lane] = halfToFloat(raws[lane].min);
  }
  storeCodes(groups, codes, line, to);
}

template <bool kWeighed, typename Codes>
IZH_INLINE void encodeWith(const FormatSpec &format, const Groups<kWeighed> &groups,
                           const Codes &codes, RawBlock *raws, Bytes *to) {
  if (format.subWeights)
    SuperBlocks<kWeighed, Codes>(format, groups, codes).encode(raws, to);
  else
    encodePlain(format, groups, codes, raws, to);
}

namespace {
// A book's entries less the zero point, ascending and each once, and the
// numbers that they have in the format.
struct SortedBook {
  int count = 0;
  int8_t entries[16];
  uint8_t numbers[16];

  explicit SortedBook(const FormatSpec &format) {
    for (size_t number = 0; number < format.codebook.size(); ++number) {
      auto entry = static_cast<int8_t>(format.codebook[number] - format.zeroPoint);
      int at = count;
      while (at > 0 && entries[at - 1] > entry)
        --at;
      if (at > 0 && entries[at - 1] == entry)
        continue;
      std::copy_backward(entries + at, entries + count, entries + count + 1);
      std::copy_backward(numbers + at, numbers + count, numbers + count + 1);
      entries[at] = entry;
      numbers[at] = static_cast<uint8_t>(number);
      ++count;
    }
  }
};
} // namespace

// In two factors: a float of normal size reaches from 2^-126 to 2^127.
IZH_INLINE Floats timesPowerOfTwo(Floats value, Ints exponent) {
  Ints half = exponent >> 1;
  return value * (Floats)((half + 127) << 23) * (Floats)((exponent - half + 127) << 23);
}

// Scales are powers of two, and multiples of format.factor: those that take the
// largest weight near the largest code are tried. Errors are counted in steps,
// as squares of large weights are beyond float32.
template <bool kWeighed>
IZH_INLINE void encodeWithPowers(const FormatSpec &format, const Groups<kWeighed> &groups,
                                 RawBlock *raws, Bytes *to) {
  SortedBook sorted(format);
  Book codes({sorted.entries, size_t(sorted.count)});
  Ends ends = endsOf(groups);
  Floats extreme = greater(-ends.low, ends.high);
  float most = format.factor * std::max(-codes.low, codes.high);
  Ints first; // bits of the smallest scale that is tried
  for (int lane = 0; lane < kLanes; ++lane)
    first[lane] = extreme[lane] > 0 ? std::ilogb(extreme[lane] / most) + 126 : 0;
  auto within = [](Ints bits) IZH_ALWAYS_INLINE {
    bits = bits < 0 ? Ints{} : bits;
    return bits > 254 ? 254 - Ints{} : bits;
  };
  auto inSteps = [&](int i, Ints bits) IZH_ALWAYS_INLINE {
    return timesPowerOfTwo(groups.x[i], 127 - bits) * (1 / format.factor);
  };
  Floats one = splat(1), best = splat(INFINITY);
  Ints chosen = within(first + 1);
  for (int step = 0; step < 3; ++step) {
    Ints bits = within(first + step);
    Floats error = {};
    for (int i = 0; i < groups.count; ++i) {
      Floats v = inSteps(i, bits), rest = v - codes.code(v, one, Floats{});
      error += groups.weighed(i, rest * rest);
    }
    error = timesPowerOfTwo(error, 2 * (bits - within(first)));
    Ints better = error < best;
    best = better ? error : best;
    chosen = better ? bits : chosen;
  }
  for (int i = 0; i < groups.count; ++i) {
    Ints number = codes.number(inSteps(i, chosen), one, Floats{});
    for (int lane = 0; lane < kLanes; ++lane)
      to[i][lane] = sorted.numbers[number[lane]];
  }
  for (int lane = 0; lane < kLanes; ++lane)
    raws[lane].scale = static_cast<uint16_t>(chosen[lane]);
}

template <bool kWeighed>
IZH_INLINE void encodeWeighed(const FormatSpec &format, const Groups<kWeighed> &groups,
                              RawBlock *raws, Bytes *to) {
  if (format.scaleKind == ScaleKind::PowerOfTwo)
    encodeWithPowers(format, groups, raws, to);
  else if (format.codebook.empty())
    encodeWith(format, groups, Range(format), raws, to);
  else
    encodeWith(format, groups, Book(format.codebook), raws, to);
}

IZH_INLINE void encodeGroupsBody(const FormatSpec &format, const Floats *x, const Floats *w,
                                 int count, RawBlock *raws, Bytes *codes) {
  if (w)
    encodeWeighed(format, Groups<true>{x, w, count}, raws, codes);
  else
    encodeWeighed(format, Groups<false>{x, w, count}, raws, codes);
}

IZH_CLONES(encodeGroups,
           (const FormatSpec &format, const Floats *x, const Floats *w, int count, RawBlock *raws,
            Bytes *codes),
           (format, x, w, count, raws, codes))
