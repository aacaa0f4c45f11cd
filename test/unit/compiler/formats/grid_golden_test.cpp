// Blocks of random bytes with the values that the gguf package (0.19) decodes
// them to, for formats whose tables are too long to work values out by hand.

#include "compiler/formats/Format.h"

#include <gtest/gtest.h>

using namespace izhc;

namespace {
struct GoldenBlock {
  const char *format, *hex;
  float values[12]; // of the weights kPlaces
};
} // namespace

static const int kPlaces[12] = {0, 7, 8, 37, 100, 133, 159, 160, 200, 239, 240, 255};

// clang-format off
static const GoldenBlock kBlocks[] = {
    {"iq2_xxs",
     "0038b8abeeab14cef599cc052535d5cec0ad06783f60ec83760457a17c472a49ed10c2fa0a67ce0d8f022647"
     "85762462c423399232b39168ce358d21b527970bb48a",
     {29.6875f, 29.6875f, 51.0625f, 32.8125f, 8.0625f, 2.6875f, 0.5f, 13.4375f, -3.5f, 8.5f, 8.5f, 8.5f}},
    {"iq2_xs",
     "00387b0c90b818268101caff5536e4307fa901a76df710c04edc083cbdb5404808b9586fbf8a6343304464f9"
     "43287f2d2133cee5d95535cc78861fd80e7fa01dd0a174645397c6a0adc1",
     {4.5f, 4.5f, 24.1875f, -4.5f, -7.5f, -6.5f, 12.5f, 0.5f, 42.1875f, 4.6875f, 12.5f, 67.1875f}},
    {"iq2_s",
     "003876aa6b833bad348bb5a93fc4900f8a8987f50f8c3b8efc8c4ce733da7d4597758c5cbdd130e147d9d82f"
     "7c5b70102d58b85f48d7dead24924b1fbe1ebedebe4b4f57ff8b313a8509618b87183ce5346b",
     {8.0625f, -8.0625f, 4.6875f, -11.5f, -26.5625f, -12.5f, -3.5f, 5.5f, -24.1875f, -35.9375f, 6.5f, 6.5f}},
    {"iq3_xxs",
     "003848df4abd744e5c8bbd04b85d34c7f36d1eb5cdc25ec5599f4e006d2fb109fa75dc800fadcc557469c96f"
     "94eb69eebb60083412b52987ef702f53e2eb824bc02064cee95b3927060103514ace681e82642726b083f047"
     "8aaed1b2bc0e5d9443c9",
     {5.5f, -71.5f, 16.5f, -1.5f, 6.5f, -131.75f, 42.5f, 10.5f, -0.5f, 193.75f, 137.5f, -12.5f}},
    {"iq3_s",
     "0038672b694c87ccd6d3becc79ce4a3c08d2480f3868dd51f295602595e7c4cc0d400185b137cf812336624a"
     "8c72a281d467abf7e837773cbee99fc450a6b8030b815550f3c2e7ee6c1a0bdfd5adf8158373d1d7731f4dd8"
     "1c1e0a749e6e2d5ea649fafaf93d76f3973b5eade3bb",
     {-43.5f, 14.5f, -72.5f, -16.5f, 31.5f, 52.5f, 24.5f, -72.5f, 103.5f, -126.5f, -34.5f, 34.5f}},
    {"iq1_s",
     "0038d035beaabaeffc58cf44af7c608e0f94b5ac4582793dec4eae5081cfcdbd8d848932eacda4aca344d0f1"
     "a21228af4cb8",
     {3.9375f, -3.0625f, 3.9375f, -0.5625f, -3.9375f, 6.5625f, -8.4375f, 0.1875f, -2.8125f, -3.9375f, -0.4375f, -0.4375f}},
    {"iq1_m",
     "7931bd761cefc7f748b0cd380b91185b32a714a4869a9ea79b376a1b18d58a299f7a35b1d71638d795b5a8a2"
     "9ff5f9eef70f6300858e6834",
     {6.5625f, 6.5625f, -8.4375f, 0.9375f, -1.6875f, 0.6875f, -0.0625f, -2.8125f, -0.5625f, 1.3125f, -2.8125f, 2.1875f}},
    {"tq1_0",
     "a7066ccc12d1840a52a7ab3153bd6131891df563103e2a28296545ccddb8b7d879d56661526f8207401198b6"
     "3352951b81f7cd9c0038",
     {0.0f, -0.5f, -0.5f, 0.0f, 0.5f, -0.5f, 0.0f, 0.0f, -0.5f, 0.0f, 0.0f, 0.0f}},
};
// clang-format on

static int digit(char c) { return c <= '9' ? c - '0' : c - 'a' + 10; }

TEST(GoldenTest, GridsDecodeAsPublished) {
  for (const GoldenBlock &golden : kBlocks) {
    const FormatSpec &format = *findFormat(golden.format);
    std::string hex = golden.hex;
    ASSERT_EQ(hex.size(), 2 * format.blockBytes) << golden.format;
    std::vector<uint8_t> block;
    for (size_t i = 0; i < hex.size(); i += 2)
      block.push_back(static_cast<uint8_t>(digit(hex[i]) << 4 | digit(hex[i + 1])));
    float values[256];
    format.decodeBlock(block.data(), values);
    for (int i = 0; i < 12; ++i)
      EXPECT_EQ(values[kPlaces[i]], golden.values[i]) << golden.format << " " << kPlaces[i];
  }
}
