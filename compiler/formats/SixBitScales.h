// The 12 bytes in which two K-formats keep eight six-bit scales and minima.
// Only for this folder.

#pragma once

#include <cstdint>

namespace izhc::formats {

// Bytes 0..3: scales 0..3 and, in the upper two bits, bits 4..5 of scales
// 4..7. Bytes 4..7: the same of the minima. Bytes 8..11: bits 0..3 of scales
// 4..7 (low nibble) and of minima 4..7 (high nibble).
inline void sixBitScale(const uint8_t *bytes, int i, uint8_t &scale, uint8_t &min) {
  if (i < 4) {
    scale = bytes[i] & 63;
    min = bytes[i + 4] & 63;
    return;
  }
  scale = (bytes[i + 4] & 15) | (bytes[i - 4] >> 6) << 4;
  min = (bytes[i + 4] >> 4) | (bytes[i] >> 6) << 4;
}

} // namespace izhc::formats
