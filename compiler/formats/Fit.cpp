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

constexpr int kLanes = 8;
typedef float Floats __attribute__((vector_size(4 * kLanes)));
typedef int32_t Ints __attribute__((vector_size(4 * kLanes)));
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

// The entry of the book next to each value, given the middles between them.
struct BookTable {
  int count;
  float first, middle[16], step[16];

  IZH_ALWAYS_INLINE explicit BookTable(llvm::ArrayRef<int8_t> book) : count(int(book.size()) - 1), first(book[0]) {
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

IZH_INLINE Sums bookSums(const Group &group, float inverse, const BookTable &book) {
  Sums sums;
  for (int i = 0; i < group.count; i += kLanes) {
    Floats x = load(group.x + i);
    addCodes(sums, x, load(group.w + i), nearest(book, x * inverse));
  }
  return sums;
}

// The weight that is largest in magnitude, with its sign.
IZH_INLINE float extremeOf(const Group &group) {
  float extreme = 0;
  for (int i = 0; i < group.count; ++i)
    if (std::abs(group.x[i]) > std::abs(extreme))
      extreme = group.x[i];
  return extreme;
}

// How much of the weights a scale accounts for, and that scale.
struct Candidate {
  float gain = 0, scale = 0;

  IZH_ALWAYS_INLINE void take(const Sums &sums) {
    float qq = total(sums.qq), xq = total(sums.xq);
    if (qq > 0 && xq * xq > gain * qq) {
      gain = xq * xq / qq;
      scale = xq / qq;
    }
  }
};

// Scales from the extreme weight to each end of the codes and around, then the
// best one's own codes again. Sums are asked for by the inverse of a scale.
template <typename SumsOf>
IZH_INLINE float searchScale(float extreme, float low, float high, SumsOf &&sumsOf) {
  constexpr float kTiny = 1e-30f;
  if (!(std::abs(extreme) > kTiny))
    return 0;
  Candidate best;
  float span = std::max(-low, high);
  for (float end : {low, high})
    for (int i = -8; i <= 8; i += 2)
      best.take(sumsOf((end + 0.1f * i * (span > 16 ? span / 16 : 1)) / extreme));
  for (int i = 0; i < 3 && best.scale != 0; ++i)
    best.take(sumsOf(1 / best.scale));
  return best.scale;
}

IZH_INLINE float fitScaleBody(const Group &group, int low, int high) {
  return searchScale(extremeOf(group), float(low), float(high),
                     [&](float inverse) IZH_ALWAYS_INLINE {
                       return sumsOf(group, inverse, 0, float(low), float(high));
                     });
}

IZH_INLINE float fitBookScaleBody(const Group &group, llvm::ArrayRef<int8_t> book) {
  BookTable table(book);
  return searchScale(
      extremeOf(group), book[0], book[book.size() - 1],
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
    for (int i = 0; i < group.count; ++i) {
      double w = group.w[i], x = group.x[i];
      fixed.one += w;
      fixed.x += w * x;
      fixed.xx += w * x * x;
    }
    error = fixed.xx;
  }

  // The best line for the codes that (inverse, base) give.
  IZH_ALWAYS_INLINE void take(float inverse, float base) {
    Sums sums = sumsOf(group, inverse, base, 0, levels);
    double qq = total(sums.qq), q = total(sums.q), xq = total(sums.xq);
    double determinant = fixed.one * qq - q * q;
    double step = 0, offset = 0;
    if (determinant > 0) {
      step = (fixed.one * xq - fixed.x * q) / determinant;
      offset = (qq * fixed.x - q * xq) / determinant;
    }
    if (determinant <= 0 || (below && offset > 0)) {
      offset = 0;
      step = qq > 0 ? xq / qq : 0;
    }
    double now = fixed.xx - 2 * step * xq - 2 * offset * fixed.x + step * step * qq +
          2 * step * offset * q + offset * offset * fixed.one;
    if (step > 0 && now < error) {
      error = now;
      best = {float(step), float(offset)};
    }
  }
};

IZH_INLINE Line fitLineBody(const Group &group, int levels, bool below) {
  float low = group.x[0], high = group.x[0];
  for (int i = 1; i < group.count; ++i) {
    low = std::min(low, group.x[i]);
    high = std::max(high, group.x[i]);
  }
  if (below)
    low = std::min(low, 0.0f);
  constexpr float kTiny = 1e-30f;
  if (!(high - low > kTiny))
    return {0, below ? std::min(low, 0.0f) : low};
  LineSearch search(group, levels, below);
  float spread = levels > 7 ? 1.0f : 0.5f;
  for (int i = -10; i <= 10; i += 2)
    search.take((levels + 0.1f * i * spread) / (high - low), low);
  for (int i = 0; i < 3 && search.best.step > 0; ++i)
    search.take(1 / search.best.step, search.best.base);
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
IZH_CLONES(float, encodeBook,
           (const Group &group, float scale, llvm::ArrayRef<int8_t> book, uint8_t *codes),
           (group, scale, book, codes))
IZH_CLONES(Moments, momentsOf, (const Group &group, const uint8_t *codes, int low),
           (group, codes, low))
