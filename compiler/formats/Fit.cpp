// Searches over scales around the one that takes the largest weight to the
// last code; of each the best line through the codes it gives is known in
// closed form. Eight lanes whatever the machine, so that sums are the same.

#include "compiler/formats/Fit.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace izhc;
using namespace izhc::formats;

namespace {

typedef float Floats __attribute__((vector_size(4 * kLanes)));
typedef int32_t Ints __attribute__((vector_size(4 * kLanes)));
typedef double Doubles __attribute__((vector_size(8 * kLanes)));
typedef int64_t Longs __attribute__((vector_size(8 * kLanes)));
typedef uint8_t Bytes __attribute__((vector_size(kLanes)));

#define IZH_ALWAYS_INLINE __attribute__((always_inline))
#define IZH_INLINE static inline IZH_ALWAYS_INLINE

// Defines `name` twice from the function name##Body, whose callees are all
// inlined: for any machine, and for those with registers of eight lanes, if the
// build knows what they are called.
#ifdef IZH_WIDE_CPU
#define IZH_CLONES(result, name, parameters, arguments)                                            \
  __attribute__((target(IZH_WIDE_CPU))) static result name##Wide parameters {                      \
    return name##Body arguments;                                                                   \
  }                                                                                                \
  static result name##Plain parameters { return name##Body arguments; }                            \
  result formats::name parameters {                                                                \
    static const bool wide = __builtin_cpu_supports(IZH_WIDE_CPU);                                 \
    return wide ? name##Wide arguments : name##Plain arguments;                                    \
  }
#else
#define IZH_CLONES(result, name, parameters, arguments)                                            \
  result formats::name parameters { return name##Body arguments; }
#endif

IZH_INLINE Floats load(const float *from) {
  Floats value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

IZH_INLINE Floats splat(float value) { return value - (Floats){}; }

// Halves to even; |v| < 2^22.
IZH_INLINE Floats rounded(Floats v) {
  Floats magic = splat(12582912.0f);
  return (v + magic) - magic;
}

IZH_INLINE Floats clamped(Floats v, float low, float high) {
  return __builtin_elementwise_min(__builtin_elementwise_max(v, splat(low)), splat(high));
}

IZH_INLINE float total(Floats v) {
  return ((v[0] + v[4]) + (v[1] + v[5])) + ((v[2] + v[6]) + (v[3] + v[7]));
}

// What codes q have in common with the weights.
struct Sums {
  Floats qq = {}, q = {}, xq = {};
};

IZH_INLINE void addCodes(Sums &sums, Floats x, Floats w, Floats q) {
  Floats wq = w * q;
  sums.qq += wq * q;
  sums.q += wq;
  sums.xq += wq * x;
}

IZH_INLINE Sums sumsOf(const Group &group, float inverse, float base, float low, float high) {
  Sums sums;
  for (int i = 0; i < group.count; i += kLanes) {
    Floats x = load(group.x + i);
    Floats q = rounded(clamped((x - base) * inverse, low, high));
    addCodes(sums, x, load(group.w + i), q);
  }
  return sums;
}

// The same of kLanes scales at once, one a lane: no sum goes across lanes, and
// no scale waits for the one before it.
IZH_INLINE Sums sumsOfEach(const Group &group, Floats inverse, float base, float low, float high) {
  Sums sums;
  for (int i = 0; i < group.count; ++i) {
    Floats x = splat(group.x[i]);
    Floats q = rounded(clamped((x - base) * inverse, low, high));
    addCodes(sums, x, splat(group.w[i]), q);
  }
  return sums;
}

// The entry of the book next to each value, given the middles between them.
struct BookTable {
  int count;
  float first, middle[16], step[16];

  IZH_ALWAYS_INLINE explicit BookTable(llvm::ArrayRef<int8_t> book)
      : count(int(book.size()) - 1), first(book[0]) {
    for (int i = 0; i < count; ++i) {
      middle[i] = 0.5f * (book[i] + book[i + 1]);
      step[i] = float(book[i + 1] - book[i]);
    }
  }
};

IZH_INLINE Floats nearest(const BookTable &book, Floats v) {
  Floats value = splat(book.first);
  for (int i = 0; i < book.count; ++i) {
    Ints above = v > splat(book.middle[i]);
    value += (Floats)(above & (Ints)splat(book.step[i]));
  }
  return value;
}

IZH_INLINE Sums bookSumsOfEach(const Group &group, Floats inverse, const BookTable &book) {
  Sums sums;
  for (int i = 0; i < group.count; ++i) {
    Floats x = splat(group.x[i]);
    addCodes(sums, x, splat(group.w[i]), nearest(book, x * inverse));
  }
  return sums;
}

IZH_INLINE Sums bookSums(const Group &group, float inverse, const BookTable &book) {
  Sums sums;
  for (int i = 0; i < group.count; i += kLanes) {
    Floats x = load(group.x + i);
    addCodes(sums, x, load(group.w + i), nearest(book, x * inverse));
  }
  return sums;
}

struct Ends {
  float low, high;
};

IZH_INLINE Ends endsOf(const Group &group) {
  Floats low = load(group.x), high = low;
  for (int i = kLanes; i < group.count; i += kLanes) {
    low = __builtin_elementwise_min(low, load(group.x + i));
    high = __builtin_elementwise_max(high, load(group.x + i));
  }
  Ends ends = {low[0], high[0]};
  for (int i = 1; i < kLanes; ++i)
    ends = {std::min(ends.low, low[i]), std::max(ends.high, high[i])};
  return ends;
}

// The weight that is largest in magnitude, with its sign.
IZH_INLINE float extremeOf(const Group &group) {
  Ends ends = endsOf(group);
  return ends.high >= -ends.low ? ends.high : ends.low;
}

// How much of the weights a scale accounts for, and that scale.
struct Candidate {
  float gain = 0, scale = 0;

  // False if it is no better than the best before.
  IZH_ALWAYS_INLINE bool take(float qq, float xq) {
    if (!(qq > 0 && xq * xq > gain * qq))
      return false;
    gain = xq * xq / qq;
    scale = xq / qq;
    return true;
  }
};

// Tenths of a code by which the scales that are tried miss the last code.
constexpr Floats kMisses = {-15, -11, -8, -6, -4, -2, 0, 3};
// For lines, where both ends can give way.
constexpr Floats kLineMisses = {-9, -6, -3, 0, 3, 8, 14, 22};

// Scales from the extreme weight to each end of the codes and around, then the
// best one's own codes again, while they make it better. Sums are asked for by
// the inverse of a scale: of kLanes, and of one.
template <typename SumsOfEach, typename SumsOf>
IZH_INLINE float searchScale(float extreme, float low, float high, SumsOfEach &&sumsOfEach,
                             SumsOf &&sumsOf) {
  constexpr float kTiny = 1e-30f;
  if (!(std::abs(extreme) > kTiny))
    return 0;
  Candidate best;
  float span = std::max(-low, high);
  for (float end : {low, high}) {
    Sums sums = sumsOfEach((end + 0.1f * kMisses * (span > 16 ? span / 16 : 1)) / extreme);
    for (int i = 0; i < kLanes; ++i)
      best.take(sums.qq[i], sums.xq[i]);
  }
  for (int i = 0; i < 3 && best.scale != 0; ++i) {
    Sums sums = sumsOf(1 / best.scale);
    if (!best.take(total(sums.qq), total(sums.xq)))
      break;
  }
  return best.scale;
}

IZH_INLINE float fitScaleBody(const Group &group, int low, int high) {
  return searchScale(
      extremeOf(group), float(low), float(high),
      [&](Floats inverse)
          IZH_ALWAYS_INLINE { return sumsOfEach(group, inverse, 0, float(low), float(high)); },
      [&](float inverse)
          IZH_ALWAYS_INLINE { return sumsOf(group, inverse, 0, float(low), float(high)); });
}

IZH_INLINE float fitBookScaleBody(const Group &group, llvm::ArrayRef<int8_t> book) {
  BookTable table(book);
  return searchScale(
      extremeOf(group), book[0], book[book.size() - 1],
      [&](Floats inverse) IZH_ALWAYS_INLINE { return bookSumsOfEach(group, inverse, table); },
      [&](float inverse) IZH_ALWAYS_INLINE { return bookSums(group, inverse, table); });
}

// Sums that do not depend on codes, in double: differences of them are taken.
struct Fixed {
  double one = 0, x = 0, xx = 0;
};

struct LineSearch {
  const Group &group;
  Fixed fixed;
  float levels;
  bool below;
  Line best = {0, 0};
  double error;

  IZH_ALWAYS_INLINE LineSearch(const Group &group, int levels, bool below)
      : group(group), levels(float(levels)), below(below) {
    Doubles one = {}, first = {}, second = {};
    for (int i = 0; i < group.count; i += kLanes) {
      Doubles w = __builtin_convertvector(load(group.w + i), Doubles);
      Doubles x = __builtin_convertvector(load(group.x + i), Doubles);
      one += w;
      first += w * x;
      second += w * x * x;
    }
    for (int i = 0; i < kLanes; ++i) {
      fixed.one += one[i];
      fixed.x += first[i];
      fixed.xx += second[i];
    }
    error = fixed.xx;
  }

  // The best lines for codes that have these sums with the weights, one a lane.
  // False if none is better than the best before.
  IZH_ALWAYS_INLINE bool take(Doubles qq, Doubles q, Doubles xq) {
    Doubles determinant = fixed.one * qq - q * q;
    Longs both = determinant > 0;
    Doubles offset = (qq * fixed.x - q * xq) / determinant;
    if (below)
      both &= offset <= 0;
    offset = (Doubles)(both & (Longs)offset);
    // Where there is no offset, codes alone.
    Doubles top = both ? fixed.one * xq - fixed.x * q : xq;
    Doubles step = top / (both ? determinant : qq);
    Doubles now = fixed.xx - 2 * step * xq - 2 * offset * fixed.x + step * step * qq +
                  2 * step * offset * q + offset * offset * fixed.one;
    bool better = false;
    for (int i = 0; i < kLanes; ++i)
      if (step[i] > 0 && now[i] < error) {
        error = now[i];
        best = {float(step[i]), float(offset[i])};
        better = true;
      }
    return better;
  }
};

IZH_INLINE Line fitLineBody(const Group &group, int levels, bool below) {
  auto [low, high] = endsOf(group);
  if (below)
    low = std::min(low, 0.0f);
  constexpr float kTiny = 1e-30f;
  if (!(high - low > kTiny))
    return {0, below ? std::min(low, 0.0f) : low};
  LineSearch search(group, levels, below);
  float spread = levels > 7 ? 1.0f : 0.5f;
  Sums each = sumsOfEach(group, (float(levels) + 0.1f * kLineMisses * spread) / (high - low), low,
                         0, float(levels));
  search.take(__builtin_convertvector(each.qq, Doubles), __builtin_convertvector(each.q, Doubles),
              __builtin_convertvector(each.xq, Doubles));
  for (int i = 0; i < 6 && search.best.step > 0; ++i) {
    Sums sums = sumsOf(group, 1 / search.best.step, search.best.base, 0, float(levels));
    Doubles none = {};
    if (!search.take(none + total(sums.qq), none + total(sums.q), none + total(sums.xq)))
      break;
  }
  return search.best;
}

// Codes of eight lanes, which are whole numbers.
IZH_INLINE void storeCodes(Floats values, uint8_t *to) {
  Bytes bytes = __builtin_convertvector(__builtin_convertvector(values, Ints), Bytes);
  std::memcpy(to, &bytes, sizeof(bytes));
}

IZH_INLINE float encodeLineBody(const Group &group, float step, float base, int low, int high,
                                uint8_t *codes) {
  float inverse = step != 0 ? 1 / step : 0;
  Floats error = {};
  for (int i = 0; i < group.count; i += kLanes) {
    Floats x = load(group.x + i);
    Floats q = rounded(clamped((x - base) * inverse, float(low), float(high)));
    Floats rest = x - (q * step + base);
    error += load(group.w + i) * rest * rest;
    if (codes)
      storeCodes(q - float(low), codes + i);
  }
  return total(error);
}

IZH_INLINE void lineErrorsBody(const Group &group, const float *steps, const float *bases, int low,
                               int high, float *errors) {
  Floats step = load(steps), base = load(bases), error = {};
  Floats inverse = 1 / step;
  inverse = (Floats)((step != 0) & (Ints)inverse);
  for (int i = 0; i < group.count; ++i) {
    Floats x = splat(group.x[i]);
    Floats q = rounded(clamped((x - base) * inverse, float(low), float(high)));
    Floats rest = x - (q * step + base);
    error += splat(group.w[i]) * rest * rest;
  }
  std::memcpy(errors, &error, sizeof(error));
}

IZH_INLINE float encodeBookBody(const Group &group, float scale, llvm::ArrayRef<int8_t> book,
                                uint8_t *codes) {
  BookTable table(book);
  float inverse = scale != 0 ? 1 / scale : 0;
  Floats error = {};
  for (int i = 0; i < group.count; i += kLanes) {
    Floats x = load(group.x + i), scaled = x * inverse;
    Floats rest = x - nearest(table, scaled) * scale;
    error += load(group.w + i) * rest * rest;
    if (!codes)
      continue;
    Ints index = {};
    for (int step = 0; step < table.count; ++step)
      index -= scaled > splat(table.middle[step]);
    Bytes bytes = __builtin_convertvector(index, Bytes);
    std::memcpy(codes + i, &bytes, sizeof(bytes));
  }
  return total(error);
}

IZH_INLINE Moments momentsOfBody(const Group &group, const uint8_t *codes, int low) {
  Sums sums;
  Floats one = {}, x = {};
  for (int i = 0; i < group.count; i += kLanes) {
    Bytes bytes;
    std::memcpy(&bytes, codes + i, sizeof(bytes));
    Floats value = load(group.x + i), weight = load(group.w + i);
    addCodes(sums, value, weight, __builtin_convertvector(bytes, Floats) + float(low));
    one += weight;
    x += weight * value;
  }
  return {total(sums.qq), total(sums.q), total(sums.xq), total(one), total(x)};
}

} // namespace

IZH_CLONES(float, fitScale, (const Group &group, int low, int high), (group, low, high))
IZH_CLONES(float, fitBookScale, (const Group &group, llvm::ArrayRef<int8_t> book), (group, book))
IZH_CLONES(Line, fitLine, (const Group &group, int levels, bool below), (group, levels, below))
IZH_CLONES(float, encodeLine,
           (const Group &group, float step, float base, int low, int high, uint8_t *codes),
           (group, step, base, low, high, codes))
IZH_CLONES(void, lineErrors,
           (const Group &group, const float *steps, const float *bases, int low, int high,
            float *errors),
           (group, steps, bases, low, high, errors))
IZH_CLONES(float, encodeBook,
           (const Group &group, float scale, llvm::ArrayRef<int8_t> book, uint8_t *codes),
           (group, scale, book, codes))
IZH_CLONES(Moments, momentsOf, (const Group &group, const uint8_t *codes, int low),
           (group, codes, low))
