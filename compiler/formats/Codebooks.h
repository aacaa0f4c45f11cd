// What the four-bit numbers of several formats stand for. Only for this folder.

#pragma once

#include <cstdint>

namespace izhc::formats {

// Steps that grow away from zero.
inline constexpr int8_t kUnevenSteps[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                            1,    13,   25,  38,  53,  69,  89,  113};

// Floats of one sign, two exponent and one fraction bit: twice their value, and
// for codes that have no sign, plus 12.
inline constexpr int8_t kTinyFloats[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
inline constexpr int32_t kTinyFloatZero = 12;
inline constexpr int8_t kTinyFloatCodes[16] = {12, 13, 14, 15, 16, 18, 20, 24,
                                               12, 11, 10, 9,  8,  6,  4,  0};

} // namespace izhc::formats
