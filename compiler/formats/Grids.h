// Grids of weights that an index chooses together. Only for this folder.

#pragma once

#include "compiler/formats/Format.h"

namespace izhc::formats {

extern const uint16_t kGrid256[256], kGrid512[512], kGrid1024[1024]; // 8 weights an entry
extern const uint16_t kGrid4x256[256], kGrid4x512[512];              // 4
extern const uint16_t kGridTernary[2048];                            // 8

inline constexpr int8_t kThreeSizes[] = {8, 25, 43};
inline constexpr int8_t kEightSizes[] = {4, 12, 20, 28, 36, 44, 52, 62};
inline constexpr int8_t kOddSizes[] = {1, 3, 5, 7, 9, 11, 13, 15};
inline constexpr int8_t kThreeSigns[] = {-1, 0, 1};

// Weight i of an entry, as decodeBlock needs it.
inline int gridValue(const uint16_t *grid, const int8_t *values, int weights, int entry, int i) {
  int bits = 16 / weights;
  return values[grid[entry] >> bits * i & ((1 << bits) - 1)];
}

// Bit i of eight signs of which the last makes the number of ones even.
inline bool evenSign(uint32_t seven, int i) {
  return i < 7 ? seven >> i & 1 : __builtin_popcount(seven & 127) & 1;
}

} // namespace izhc::formats
