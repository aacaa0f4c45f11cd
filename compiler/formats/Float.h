// Scalar pieces of decoding and encoding. Only for this folder.

#pragma once

#include "compiler/formats/Format.h"

#include <algorithm>
#include <cstring>

namespace izhc::formats {

inline uint16_t load16(const uint8_t *bytes) {
  return static_cast<uint16_t>(bytes[0] | bytes[1] << 8);
}

inline uint32_t load32(const uint8_t *bytes) {
  return load16(bytes) | static_cast<uint32_t>(load16(bytes + 2)) << 16;
}

inline float loadHalf(const uint8_t *bytes) { return halfToFloat(load16(bytes)); }

// The nearest half that is not infinite.
inline uint16_t finiteHalf(float value) {
  return floatToHalf(std::clamp(value, -65504.0f, 65504.0f));
}

inline float floatFromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

} // namespace izhc::formats
