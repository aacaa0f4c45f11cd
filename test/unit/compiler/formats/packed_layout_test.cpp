// Sizes and offsets of the packed form against the published drawing
// (16 rows, bytes from the start of a unit), not against the packer.

#include "test/unit/compiler/formats/random_blocks.h"

#include "compiler/formats/PackedLayout.h"

#include <gtest/gtest.h>

using namespace izhc;
using namespace izhc::test;

namespace {
struct UnitSize {
  const char *name;
  int64_t weights, bytes;
};
} // namespace

TEST(PackedLayoutTest, UnitsHaveTheSizesOfTheDrawing) {
  const UnitSize sizes[] = {{"q4_0", 64, 576},      {"q4_1", 64, 640},   {"q5_0", 64, 704},
                            {"q5_1", 64, 768},      {"q8_0", 64, 1088},  {"q4_k", 256, 2304},
                            {"q5_k", 256, 2816},    {"q6_k", 256, 3392}, {"f32", 1, 64},
                            {"f16", 1, 32},         {"bf16", 1, 32},     {"q3_k", 256, 1792},
                            {"iq4_nl", 64, 576},    {"mxfp4", 64, 544},  {"nvfp4", 64, 576},
                            {"iq4_xs", 256, 2176},  {"q2_k", 256, 1344}, {"tq2_0", 256, 1056},
                            {"iq2_xxs", 256, 1056}, {"iq1_m", 256, 896}, {"tq1_0", 256, 864}};
  for (const UnitSize &size : sizes) {
    PackedLayout layout(*findFormat(size.name));
    EXPECT_EQ(layout.unitWeights, size.weights) << size.name;
    EXPECT_EQ(layout.unitBytes, size.bytes) << size.name;
  }
}

// A matrix of whole tiles and units is at most 2 % larger than its blocks.
TEST(PackedLayoutTest, CostsAtMostTwoPercent) {
  for (const FormatSpec *format : allFormats()) {
    PackedLayout layout(*format);
    int64_t source = 64 * 1024 / format->blockWeights * format->blockBytes;
    EXPECT_LE(layout.matrixBytes(64, 1024) * 100, source * 102) << format->name.str();
  }
}

TEST(PackedLayoutTest, RoundsRowsAndColumnsUp) {
  PackedLayout blocks32(*findFormat("q4_0"));
  EXPECT_EQ(blocks32.unitsPerRow(32), 1);
  EXPECT_EQ(blocks32.unitsPerRow(96), 2);
  EXPECT_EQ(blocks32.tileBytes(96), 2 * 576);
  EXPECT_EQ(blocks32.matrixBytes(17, 96), 2 * 2 * 576);
  PackedLayout floats(*findFormat("f16"));
  EXPECT_EQ(floats.matrixBytes(1, 5), 5 * 32);
}

// q4_1: d(b0), m(b0), d(b1), m(b1), then 4 nibble vectors a block.
TEST(PackedLayoutTest, BlocksOf32WithMinima) {
  PackedLayout layout(*findFormat("q4_1"));
  EXPECT_EQ(layout.scaleOffset(0), 0);
  EXPECT_EQ(layout.minOffset(31), 32);
  EXPECT_EQ(layout.scaleOffset(32), 64);
  EXPECT_EQ(layout.minOffset(63), 96);
  EXPECT_EQ(layout.planeOffset(0, 0), 128);
  EXPECT_EQ(layout.planeOffset(0, 15), 128 + 64);
  EXPECT_EQ(layout.planeOffset(0, 32), 128 + 256);
}

// q5_0: d(b0), d(b1); a block: one bit vector, then 4 nibble vectors.
TEST(PackedLayoutTest, BlocksOf32WithAHighBit) {
  PackedLayout layout(*findFormat("q5_0"));
  ASSERT_EQ(layout.planes.size(), 2u);
  EXPECT_EQ(layout.planes[0].width, 1u);
  EXPECT_EQ(layout.planes[0].shift, 4u);
  EXPECT_EQ(layout.scaleOffset(40), 32);
  for (int64_t block : {0, 1}) {
    EXPECT_EQ(layout.planeOffset(0, 32 * block + 31), 64 + 320 * block);
    for (int64_t i = 0; i < 4; ++i)
      EXPECT_EQ(layout.planeOffset(1, 32 * block + 8 * i), 128 + 320 * block + 64 * i);
  }
}

TEST(PackedLayoutTest, BytesCodes) {
  PackedLayout layout(*findFormat("q8_0"));
  for (int64_t g = 0; g < 16; ++g)
    EXPECT_EQ(layout.planeOffset(0, 4 * g + 3), 64 + 64 * g);
}

// q4_k, q5_k: d, dmin, PA, PB, PH; chunks of 512 or 640 bytes at 256.
TEST(PackedLayoutTest, BlocksOf256WithSixBitScales) {
  PackedLayout four(*findFormat("q4_k")), five(*findFormat("q5_k"));
  EXPECT_EQ(four.subs, SubScales::SixBitPacked);
  EXPECT_EQ(four.scaleOffset(255), 0);
  EXPECT_EQ(four.minOffset(255), 32);
  EXPECT_EQ(four.subOffset(0), 64);
  for (int64_t q = 0; q < 4; ++q)
    for (int64_t block : {0, 1})
      for (int64_t i = 0; i < 4; ++i) {
        int64_t k = 64 * q + 32 * block + 8 * i;
        EXPECT_EQ(four.planeOffset(0, k), 256 + 512 * q + 256 * block + 64 * i);
        EXPECT_EQ(five.planeOffset(0, k), 256 + 640 * q + 320 * block);
        EXPECT_EQ(five.planeOffset(1, k), 256 + 640 * q + 320 * block + 64 + 64 * i);
      }
}

// q6_k: d, padding; chunks of 832 bytes at 64: S, then for each 16 weights a
// two-bit vector and two nibble vectors.
TEST(PackedLayoutTest, BlocksOf256WithScalesInTheChunk) {
  PackedLayout layout(*findFormat("q6_k"));
  EXPECT_EQ(layout.subs, SubScales::InChunk);
  for (int64_t q = 0; q < 4; ++q) {
    EXPECT_EQ(layout.subOffset(q), 64 + 832 * q);
    for (int64_t h = 0; h < 4; ++h) {
      int64_t k = 64 * q + 16 * h, chunk = 64 + 832 * q;
      EXPECT_EQ(layout.planeOffset(0, k), chunk + 64 + 192 * h);
      EXPECT_EQ(layout.planeOffset(1, k), chunk + 128 + 192 * h);
      EXPECT_EQ(layout.planeOffset(1, k + 8), chunk + 192 + 192 * h);
    }
  }
}
