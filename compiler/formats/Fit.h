// Scales and minima for groups of weights: each function makes the sum of
// w * (x - encoded x)^2 small over a group whose size is a multiple of 8.
// Results are the same on every machine. Only for this folder.

#pragma once

#include "llvm/ADT/ArrayRef.h"
#include <cstdint>

namespace izhc::formats {

// Weights of a group and how much each of them matters.
struct Group {
  const float *x;
  const float *w;
  int count;
};

// Codes are round(x / scale), kept within [low, high]; the scale may have
// either sign. 0 where all weights are.
float fitScale(const Group &group, int low, int high);

// Codes are round((x - base) / step), within [0, levels].
struct Line {
  float step, base; // step >= 0
};
// `below`: the base is at most 0.
Line fitLine(const Group &group, int levels, bool below);

// Codes are numbers of entries of the book, which ascend.
float fitBookScale(const Group &group, llvm::ArrayRef<int8_t> book);

// The error of these codes, which are written (less `low`) if `codes` is not
// null.
float encodeLine(const Group &group, float step, float base, int low, int high, uint8_t *codes);
float encodeBook(const Group &group, float scale, llvm::ArrayRef<int8_t> book, uint8_t *codes);

// What encodeLine returns, for kLanes steps and bases at once.
constexpr int kLanes = 8;
void lineErrors(const Group &group, const float *steps, const float *bases, int low, int high,
                float *errors);

// Sums for fits of several groups at once: over w * q * q, w * q, w * x * q,
// w, w * x, where q are codes plus `low`.
struct Moments {
  float qq = 0, q = 0, xq = 0, one = 0, x = 0;
};
Moments momentsOf(const Group &group, const uint8_t *codes, int low);

} // namespace izhc::formats
