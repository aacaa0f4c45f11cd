// Encoders against published errors, against plain rounding, and against the
// formats' own limits.

#include "compiler/formats/Encode.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <vector>

using namespace izhc;

// Weights with long tails, as models have them.
static std::vector<float> weights(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::student_t_distribution<float> spread(5.0f);
  std::vector<float> values(count);
  for (float &value : values)
    value = 0.02f * spread(random);
  return values;
}

static std::vector<float> recoded(const FormatSpec &format, const std::vector<float> &values,
                                  const float *importance = nullptr) {
  std::vector<float> result(values.size());
  std::vector<uint8_t> block(format.blockBytes);
  for (size_t i = 0; i < values.size(); i += format.blockWeights) {
    encodeBlocks(format, &values[i], importance ? importance + i : nullptr, 1, block.data());
    format.decodeBlock(block.data(), &result[i]);
  }
  return result;
}

static double relativeError(const std::vector<float> &values, const std::vector<float> &got,
                            const float *importance = nullptr) {
  double error = 0, size = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    double weight = importance ? importance[i] : 1, rest = double(values[i]) - got[i];
    error += weight * rest * rest;
    size += weight * double(values[i]) * values[i];
  }
  return std::sqrt(error / size);
}

// A million weights of Student's distribution with 5 degrees of freedom; the
// errors are those of the textbook's simple encoders.
TEST(EncodeTest, IsAsCloseAsThePublishedTable) {
  std::vector<float> values = weights(4096 * 256, 1);
  const std::pair<const char *, double> table[] = {
      {"q8_0", .0068}, {"q4_0", .108}, {"q4_1", .0901}, {"q4_k", .0903}};
  for (auto [name, bar] : table) {
    double error = relativeError(values, recoded(*findFormat(name), values));
    EXPECT_LE(error, bar) << name;
    EXPECT_GE(error, bar / 2) << name;
  }
}

static std::vector<const FormatSpec *> encodable() {
  std::vector<const FormatSpec *> list;
  for (const FormatSpec *format : allFormats())
    if (canEncode(*format))
      list.push_back(format);
  return list;
}

class EncoderTest : public testing::TestWithParam<const FormatSpec *> {};

// Codes of b bits over [-max, max] are never further off than half a step of
// the widest range that the block can have.
TEST_P(EncoderTest, LosesLittleOfEachBlock) {
  const FormatSpec &format = *GetParam();
  size_t count = std::max<size_t>(format.blockWeights, 32);
  std::vector<float> values = weights(64 * count, 2);
  double error = relativeError(values, recoded(format, values));
  double bits = 8.0 * format.blockBytes / format.blockWeights;
  // Gaussian weights lose a factor of about 2 a bit.
  EXPECT_LE(error, 2 * std::pow(2.0, -std::min(bits, 9.0) + 0.7)) << bits;
}

TEST_P(EncoderTest, KeepsWhatTheFormatCanHold) {
  const FormatSpec &format = *GetParam();
  if (format.subWeights)
    return;
  std::vector<float> values = weights(32 * format.blockWeights, 3);
  std::vector<float> once = recoded(format, values);
  EXPECT_LE(relativeError(once, recoded(format, once)), 2e-3);
}

TEST_P(EncoderTest, EncodesZerosAsZeros) {
  const FormatSpec &format = *GetParam();
  std::vector<float> zeros(format.blockWeights);
  EXPECT_EQ(recoded(format, zeros), zeros);
}

TEST_P(EncoderTest, EncodesEqualWeights) {
  const FormatSpec &format = *GetParam();
  std::vector<float> equal(format.blockWeights, -0.25f);
  for (float value : recoded(format, equal))
    EXPECT_NEAR(value, -0.25f, 0.01f);
}

TEST_P(EncoderTest, StaysFiniteWithHugeAndTinyWeights) {
  const FormatSpec &format = *GetParam();
  if (format.kind != ElementKind::Quantized)
    return;
  for (float size : {3e38f, 1e20f, 1e-20f, 1e-40f}) {
    std::vector<float> values = weights(format.blockWeights, 4);
    for (float &value : values)
      value = std::clamp(value * 5, -1.0f, 1.0f) * size;
    for (float value : recoded(format, values))
      EXPECT_TRUE(std::isfinite(value)) << size;
  }
}

// A block of weights near the largest, of either sign, loses no more of itself
// than blocks of others do (see above).
TEST_P(EncoderTest, HoldsWeightsUpToTheLargest) {
  const FormatSpec &format = *GetParam();
  float most = float(largestWeight(format));
  if (double(most) > largestWeight(format))
    most = std::nextafter(most, 0.0f);
  std::vector<float> large(format.blockWeights);
  for (size_t i = 0; i < large.size(); ++i)
    large[i] = (i % 2 ? -most : most) * (1 - 0.5f * float(i) / float(large.size()));
  double error = relativeError(large, recoded(format, large));
  double bits = 8.0 * format.blockBytes / format.blockWeights;
  EXPECT_LE(error, 2 * std::pow(2.0, -std::min(bits, 9.0) + 0.7)) << most;
}

TEST(EncodeTest, KnowsWhatTypesHold) {
  // The largest half times the largest code, and sub-scale.
  for (auto [name, most] : {std::pair("f16", 65504.0),
                            {"q8_0", 65504.0 * 127},
                            {"q4_0", 65504.0 * 7},
                            {"q4_1", 65504.0},
                            {"q6_k", 65504.0 * 127 * 31},
                            {"q4_k", 65504.0 * 63},
                            {"iq4_nl", 65504.0 * 113}})
    EXPECT_EQ(largestWeight(*findFormat(name)), most) << name;
}

TEST_P(EncoderTest, SparesWhatIsImportant) {
  const FormatSpec &format = *GetParam();
  if (format.kind != ElementKind::Quantized)
    return;
  std::vector<float> values = weights(64 * 256, 5), importance(values.size());
  std::mt19937 random(6);
  for (float &value : importance)
    value = random() % 8 ? 0.01f : 1.0f;
  double weighed =
      relativeError(values, recoded(format, values, importance.data()), importance.data());
  double alike = relativeError(values, recoded(format, values), importance.data());
  EXPECT_LE(weighed, alike);
}

// Only ratios of importance count, wherever in float32's range they are.
TEST_P(EncoderTest, TakesImportanceOfAnySize) {
  const FormatSpec &format = *GetParam();
  std::vector<float> values = weights(8 * format.blockWeights, 10), importance(values.size());
  std::mt19937 random(11);
  for (float &value : importance)
    value = 1.0f + random() % 8;
  std::vector<float> expected = recoded(format, values, importance.data());
  for (int exponent : {-120, -70, 60, 120}) {
    std::vector<float> scaled = importance;
    for (float &value : scaled)
      value = std::ldexp(value, exponent);
    EXPECT_EQ(recoded(format, values, scaled.data()), expected) << exponent;
  }
}

// Weights of two values, of little spread, of a ramp, and as models have them.
static std::vector<std::vector<float>> awkward(size_t count) {
  std::vector<float> signs(count), lines(count), ramp(count), random = weights(count, 12);
  for (size_t i = 0; i < count; ++i) {
    signs[i] = random[i] > 0 ? 1.0f : -1.0f;
    lines[i] = 1 + 0.01f * random[i];
    ramp[i] = float(i) / float(count) - 0.5f;
  }
  return {signs, lines, ramp, random};
}

TEST_P(EncoderTest, IsNeverWorseForKnowingWhatMatters) {
  const FormatSpec &format = *GetParam();
  std::mt19937 random(13);
  for (const std::vector<float> &values : awkward(64 * format.blockWeights))
    for (bool sparse : {true, false}) {
      std::vector<float> importance(values.size());
      for (float &value : importance)
        value = sparse ? float(random() % 5 == 0) : std::pow(10.0f, float(random() % 25) - 20);
      double with =
          relativeError(values, recoded(format, values, importance.data()), importance.data());
      EXPECT_LE(with, relativeError(values, recoded(format, values), importance.data()));
    }
}

// Below the spread of the weights, half precision and six-bit multiples of it
// remain: a hundredth.
TEST_P(EncoderTest, EncodesNearlyEqualWeights) {
  const FormatSpec &format = *GetParam();
  std::mt19937 random(15);
  std::normal_distribution<float> normal;
  std::vector<float> alike(format.blockWeights, -0.37f);
  double bar = relativeError(alike, recoded(format, alike)) + 1e-2;
  for (float mean : {-0.37f, 0.37f, 3.0f, -3.0f})
    for (float spread : {3e-8f, 1e-7f, 1e-6f, 1e-5f}) {
      std::vector<float> values(64 * format.blockWeights);
      for (float &value : values)
        value = mean * (1 + spread * normal(random));
      EXPECT_LE(relativeError(values, recoded(format, values)), bar) << mean << ' ' << spread;
    }
}

// What does not matter at all must not leave the scale undefined.
TEST_P(EncoderTest, TakesImportanceOfNothing) {
  const FormatSpec &format = *GetParam();
  std::vector<float> values = weights(format.blockWeights, 7);
  std::vector<float> nothing(format.blockWeights);
  EXPECT_EQ(recoded(format, values, nothing.data()), recoded(format, values));
}

// Blocks are encoded many at once: neither those beside nor how many there are
// may change one.
TEST_P(EncoderTest, EncodesABlockAlikeInAnyCompany) {
  const FormatSpec &format = *GetParam();
  constexpr size_t kCount = 37;
  std::vector<float> values = weights(kCount * format.blockWeights, 8);
  std::vector<float> importance = weights(values.size(), 9);
  for (float &value : importance)
    value = std::max(value, 0.0f);
  // A block much larger, one of zeros, one where nothing matters.
  for (size_t i = 0; i < format.blockWeights; ++i) {
    values[3 * format.blockWeights + i] *= 1000;
    values[7 * format.blockWeights + i] = 0;
    importance[8 * format.blockWeights + i] = 0;
  }
  for (bool weighs : {false, true}) {
    const float *weighed = weighs ? importance.data() : nullptr;
    std::vector<uint8_t> together(kCount * format.blockBytes), alone(together.size());
    encodeBlocks(format, values.data(), weighed, kCount, together.data());
    for (size_t block = 0; block < kCount; ++block) {
      size_t first = block * format.blockWeights;
      encodeBlocks(format, &values[first], weighed ? weighed + first : nullptr, 1,
                   &alone[block * format.blockBytes]);
    }
    EXPECT_EQ(together, alone);
  }
}

INSTANTIATE_TEST_SUITE_P(AllFormats, EncoderTest, testing::ValuesIn(encodable()),
                         [](const auto &info) { return info.param->name.str(); });
