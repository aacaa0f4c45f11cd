// Groups into lanes and back, sixteen values of sixteen lanes at a time: four
// perfect shuffles of a square exchange its rows and columns.

#include "compiler/formats/EncodeGroups.h"

#include <cstring>

using namespace izhc;
using namespace izhc::formats;

template <typename Vector> IZH_INLINE void transpose(Vector (&rows)[kLanes]) {
  for (int step = 0; step < 4; ++step) {
    Vector next[kLanes];
    for (int i = 0; i < kLanes / 2; ++i) {
      Vector a = rows[i], b = rows[i + kLanes / 2];
      next[2 * i] =
          __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
      next[2 * i + 1] = __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29,
                                                14, 30, 15, 31);
    }
    std::memcpy(rows, next, sizeof(rows));
  }
}

IZH_INLINE void sideBySideBody(const float *from, int count, Floats *to) {
  for (int i = 0; i < count; i += kLanes) {
    Floats rows[kLanes];
    for (int lane = 0; lane < kLanes; ++lane)
      std::memcpy(&rows[lane], from + lane * count + i, sizeof(Floats));
    transpose(rows);
    std::memcpy(to + i, rows, sizeof(rows));
  }
}

IZH_INLINE void oneByOneBody(const Bytes *from, int count, uint8_t *to) {
  for (int i = 0; i < count; i += kLanes) {
    Bytes rows[kLanes];
    std::memcpy(rows, from + i, sizeof(rows));
    transpose(rows);
    for (int lane = 0; lane < kLanes; ++lane)
      std::memcpy(to + lane * count + i, &rows[lane], sizeof(Bytes));
  }
}

IZH_CLONES(sideBySide, (const float *from, int count, Floats *to), (from, count, to))
IZH_CLONES(oneByOne, (const Bytes *from, int count, uint8_t *to), (from, count, to))
