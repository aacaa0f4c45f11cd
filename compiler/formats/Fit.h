// Scales and minima for groups of weights: each function makes the sum of
// w * (x - encoded x)^2 small over a group, for a group in each lane. They
// search over scales around the one that takes the largest weight to the last
// code; of each the best line through the codes it gives is known in closed
// form. Results are the same on every machine. Only for this folder.

#pragma once

#include "compiler/formats/Format.h"
#include "compiler/formats/Lanes.h"
#include <algorithm>

namespace izhc::formats {

// Weights of kLanes groups, value i of each in x[i], and how much each of them
// matters; or all matter alike.
template <bool kWeighed> struct Groups {
  const Floats *x;
  const Floats *w;
  int count;

  IZH_ALWAYS_INLINE Floats weighed(int i, Floats value) const {
    return kWeighed ? w[i] * value : value;
  }
};

// Codes are round((x - base) * inverse), kept within [low, high], and stored
// less `zero`.
struct Range {
  float low, high, zero;

  explicit Range(const FormatSpec &format)
      : low(format.signedCodes ? -127 : -float(format.zeroPoint)),
        high(format.signedCodes ? 127 : float((1 << format.codeBits) - 1 - format.zeroPoint)),
        zero(format.signedCodes ? 0 : low) {}

  IZH_ALWAYS_INLINE Floats code(Floats x, Floats inverse, Floats base) const {
    return rounded(clamped((x - base) * inverse, low, high));
  }
  IZH_ALWAYS_INLINE Ints number(Floats x, Floats inverse, Floats base) const {
    return __builtin_convertvector(code(x, inverse, base) - zero, Ints);
  }
};

// Codes are the nearest entries of a book that ascends, told by the middles
// between them.
struct Book {
  int count;
  float low, high, middle[16], step[16];

  explicit Book(llvm::ArrayRef<int8_t> book)
      : count(int(book.size()) - 1), low(book[0]), high(book[count]) {
    for (int i = 0; i < count; ++i) {
      middle[i] = 0.5f * (book[i] + book[i + 1]);
      step[i] = float(book[i + 1] - book[i]);
    }
  }

  IZH_ALWAYS_INLINE Floats code(Floats x, Floats inverse, Floats base) const {
    Floats v = (x - base) * inverse, value = splat(low);
    for (int i = 0; i < count; ++i)
      value += where(v > middle[i], splat(step[i]));
    return value;
  }
  IZH_ALWAYS_INLINE Ints number(Floats x, Floats inverse, Floats base) const {
    Floats v = (x - base) * inverse;
    Ints number = {};
    for (int i = 0; i < count; ++i)
      number -= v > middle[i];
    return number;
  }
};

// The weights that codes stand for are step * code + base.
struct Line {
  Floats step = {}, base = {};

  // 0 where there is no step.
  IZH_ALWAYS_INLINE Floats inverse() const { return where(step != 0, 1 / step); }
};

// What codes q have in common with the weights: sums over w * q * q, w * q and
// w * x * q.
struct Sums {
  Floats qq = {}, q = {}, xq = {};
};

template <bool kWeighed, typename Codes>
IZH_INLINE Sums sumsOf(const Groups<kWeighed> &groups, const Codes &codes, Floats inverse,
                       Floats base) {
  Sums sums;
  for (int i = 0; i < groups.count; ++i) {
    Floats x = groups.x[i], q = codes.code(x, inverse, base), wq = groups.weighed(i, q);
    sums.qq += wq * q;
    sums.q += wq;
    sums.xq += wq * x;
  }
  return sums;
}

// Sums over w and w * x.
struct PlainSums {
  Floats one = {}, x = {};
};

template <bool kWeighed> IZH_INLINE PlainSums plainSumsOf(const Groups<kWeighed> &groups) {
  PlainSums sums;
  for (int i = 0; i < groups.count; ++i) {
    sums.one += groups.weighed(i, splat(1));
    sums.x += groups.weighed(i, groups.x[i]);
  }
  return sums;
}

template <bool kWeighed, typename Codes>
IZH_INLINE Floats errorOf(const Groups<kWeighed> &groups, const Codes &codes, const Line &line) {
  Floats inverse = line.inverse(), error = {};
  for (int i = 0; i < groups.count; ++i) {
    Floats x = groups.x[i];
    Floats rest = x - (codes.code(x, inverse, line.base) * line.step + line.base);
    error += groups.weighed(i, rest * rest);
  }
  return error;
}

// The codes as they are stored.
template <bool kWeighed, typename Codes>
IZH_INLINE void storeCodes(const Groups<kWeighed> &groups, const Codes &codes, const Line &line,
                           Bytes *to) {
  Floats inverse = line.inverse();
  for (int i = 0; i < groups.count; ++i)
    to[i] = __builtin_convertvector(codes.number(groups.x[i], inverse, line.base), Bytes);
}

struct Ends {
  Floats low, high;
};

template <bool kWeighed> IZH_INLINE Ends endsOf(const Groups<kWeighed> &groups) {
  Ends ends = {groups.x[0], groups.x[0]};
  for (int i = 1; i < groups.count; ++i)
    ends = {lesser(ends.low, groups.x[i]), greater(ends.high, groups.x[i])};
  return ends;
}

// A range of codes by which nothing can be divided.
constexpr float kTiny = 1e-30f;

// How much of the weights a scale accounts for, and that scale.
struct Candidate {
  Floats gain = {}, scale = {};

  // Where it is better than the best before.
  IZH_ALWAYS_INLINE Ints take(const Sums &sums) {
    Floats square = sums.xq * sums.xq;
    Ints better = (sums.qq > 0) & (square > gain * sums.qq);
    gain = better ? square / sums.qq : gain;
    scale = better ? sums.xq / sums.qq : scale;
    return better;
  }
};

// Tenths of a code by which the scales that are tried miss the last code.
constexpr float kMisses[] = {-15, -11, -8, -6, -4, -2, 0, 3};
// For lines, where both ends can give way.
constexpr float kLineMisses[] = {-9, -6, -3, 0, 3, 8, 14, 22};

// Scales from the extreme weight to each end of the codes and around, then the
// best one's own codes again, while they make it better. The scale may have
// either sign, and is 0 where all weights are.
template <bool kWeighed, typename Codes>
IZH_INLINE Floats fitScale(const Groups<kWeighed> &groups, const Codes &codes) {
  auto [lowest, highest] = endsOf(groups);
  Floats extreme = highest >= -lowest ? highest : lowest;
  Ints active = greater(extreme, -extreme) > kTiny;
  Floats inverse = 1 / (active ? extreme : splat(1));
  float span = std::max(-codes.low, codes.high), spread = span > 16 ? span / 16 : 1;
  Candidate best;
  for (float end : {codes.low, codes.high})
    for (float miss : kMisses)
      best.take(sumsOf(groups, codes, (end + 0.1f * miss * spread) * inverse, Floats{}));
  for (int i = 0; i < 3; ++i)
    if (!any(best.take(sumsOf(groups, codes, Line{best.scale}.inverse(), Floats{}))))
      break;
  return where(active, best.scale);
}

// Weights are counted from `low`, their least, so that differences are taken of
// numbers of their spread's size, whatever their mean.
struct LineSearch {
  // Sums that do not depend on codes, in double: differences of them are taken.
  Doubles one = {}, x = {}, xx = {};
  bool below;
  Doubles highest;
  Doubles error, step = {}, base = {};

  // Begins with the weights' mean and no step.
  template <bool kWeighed>
  IZH_ALWAYS_INLINE void start(const Groups<kWeighed> &groups, bool belowZero, Floats low) {
    below = belowZero;
    highest = -wide(low);
    for (int i = 0; i < groups.count; ++i) {
      Doubles value = wide(groups.x[i]);
      Doubles w = kWeighed ? wide(groups.w[i]) : 1 - Doubles{};
      one += w;
      x += w * value;
      xx += w * value * value;
    }
    Doubles mean = x / one;
    if (below)
      mean = mean < highest ? mean : highest;
    Doubles now = xx - mean * (2 * x - mean * one);
    Longs better = now < xx;
    error = better ? now : xx;
    base = better ? mean : Doubles{};
  }

  IZH_ALWAYS_INLINE Line line() const { return {narrow(step), narrow(base)}; }

  // The best line for codes that have these sums with the weights. Where it is
  // better than the best before.
  IZH_ALWAYS_INLINE Ints take(const Sums &sums) {
    Doubles qq = wide(sums.qq), q = wide(sums.q), xq = wide(sums.xq);
    Doubles determinant = one * qq - q * q;
    // Less is what rounding leaves of codes that are all alike.
    Longs both = determinant > kAlike * one * qq;
    Longs above = {};
    if (below)
      above = both & (qq * x - q * xq > highest * determinant);
    both &= ~above;
    // Where there is no offset, codes alone.
    Doubles fixed = above ? highest : Doubles{};
    Doubles newStep = (both ? one * xq - x * q : xq - fixed * q) / (both ? determinant : qq);
    Doubles newBase = both ? (x - newStep * q) / one : fixed;
    Doubles now = xx - newStep * xq - newBase * (2 * x - newStep * q - newBase * one);
    Longs better = (newStep > 0) & (now < error);
    error = better ? now : error;
    step = better ? newStep : step;
    base = better ? newBase : base;
    return __builtin_convertvector(better, Ints);
  }

private:
  // 32 codes of 31, but for one that is 30, have 3e-5.
  static constexpr double kAlike = 1e-5;
};

// With a step of at least 0; `below`: the base is at most 0.
template <bool kWeighed>
IZH_INLINE Line fitLine(const Groups<kWeighed> &groups, const Range &codes, bool below) {
  auto [low, high] = endsOf(groups);
  if (below)
    low = lesser(low, Floats{});
  Ints active = high - low > kTiny;
  Floats inverse = 1 / (active ? high - low : splat(1));
  Floats fromLow[kMostGroup];
  for (int i = 0; i < groups.count; ++i)
    fromLow[i] = groups.x[i] - low;
  Groups<kWeighed> moved{fromLow, groups.w, groups.count};
  LineSearch search;
  search.start(moved, below, low);
  float spread = codes.high > 7 ? 0.1f : 0.05f;
  for (float miss : kLineMisses)
    search.take(sumsOf(moved, codes, (codes.high + miss * spread) * inverse, Floats{}));
  for (int i = 0; i < 6; ++i) {
    Line line = search.line();
    if (!any(search.take(sumsOf(moved, codes, line.inverse(), line.base))))
      break;
  }
  Line line = search.line();
  return {where(active, line.step), low + where(active, line.base)};
}

} // namespace izhc::formats
