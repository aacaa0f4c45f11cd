// Half-precision conversion against values written out by hand and, for every
// half, against the definition of the encoding.

#include "compiler/formats/Format.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

using namespace izhc;

TEST(HalfTest, EveryHalfHasTheValueOfItsDefinition) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    double sign = bits & 0x8000 ? -1 : 1;
    float value = halfToFloat(static_cast<uint16_t>(bits));
    if (exponent == 31) {
      EXPECT_EQ(std::isnan(value), fraction != 0);
      EXPECT_EQ(std::isinf(value), fraction == 0);
    } else if (exponent == 0) {
      EXPECT_EQ(value, sign * std::ldexp(fraction, -24));
    } else {
      EXPECT_EQ(value, sign * std::ldexp(1024 + fraction, exponent - 25));
    }
    EXPECT_EQ(std::signbit(value), (bits & 0x8000) != 0);
  }
}

TEST(HalfTest, RowsHoldTheSameBits) {
  std::vector<uint16_t> halves(1 << 16);
  std::iota(halves.begin(), halves.end(), 0);
  std::vector<float> values(halves.size());
  decodeBlocks(*findFormat("f16"), reinterpret_cast<const uint8_t *>(halves.data()), halves.size(),
               values.data());
  for (size_t bits = 0; bits < halves.size(); ++bits)
    ASSERT_EQ(std::bit_cast<uint32_t>(values[bits]), std::bit_cast<uint32_t>(halfToFloat(bits)))
        << bits;
}

TEST(HalfTest, EveryHalfSurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    if (std::isnan(halfToFloat(static_cast<uint16_t>(bits))))
      continue;
    EXPECT_EQ(floatToHalf(halfToFloat(static_cast<uint16_t>(bits))), bits);
  }
}

// Between two neighbours the nearer wins, and the even one when equally near.
TEST(HalfTest, RoundsToNearestEven) {
  for (uint32_t bits = 0; bits < 0x7bff; ++bits) {
    float low = halfToFloat(static_cast<uint16_t>(bits));
    float high = halfToFloat(static_cast<uint16_t>(bits + 1));
    float middle = low + (high - low) / 2;
    EXPECT_EQ(floatToHalf(middle), bits + (bits & 1));
    EXPECT_EQ(floatToHalf(std::nextafter(middle, 0.0f)), bits);
    EXPECT_EQ(floatToHalf(std::nextafter(middle, 1e9f)), bits + 1);
    EXPECT_EQ(floatToHalf(-middle), 0x8000 + bits + (bits & 1));
  }
}

TEST(HalfTest, OverflowsToInfinityAndKeepsNan) {
  EXPECT_EQ(floatToHalf(65504.0f), 0x7bff);
  EXPECT_EQ(floatToHalf(65519.0f), 0x7bff);
  EXPECT_EQ(floatToHalf(65520.0f), 0x7c00);
  EXPECT_EQ(floatToHalf(-1e30f), 0xfc00);
  EXPECT_EQ(floatToHalf(std::numeric_limits<float>::infinity()), 0x7c00);
  EXPECT_EQ(floatToHalf(1e-30f), 0);
  EXPECT_TRUE(std::isnan(halfToFloat(floatToHalf(std::nanf("")))));
}
