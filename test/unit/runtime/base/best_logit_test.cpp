#include "runtime/base/best_logit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace izh {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Straight from the definition.
int32_t expected(const std::vector<float>& logits) {
  uint32_t best = 0;
  for (uint32_t i = 0; i < logits.size(); ++i) {
    if (!(logits[i] < kInfinity)) return -1;
    if (logits[i] > logits[best]) best = i;
  }
  return int32_t(best);
}

int32_t found(const std::vector<float>& logits) {
  return best_logit(logits.data(), uint32_t(logits.size()));
}

// Around what a step and a block hold, and some more.
const std::vector<uint32_t> kCounts = {1,    2,    15,   16,   17,   31,  33,
                                       1023, 1024, 1025, 2048, 5000, 49152};

TEST(BestLogit, IsTheGreatest) {
  std::mt19937 random(1);
  std::normal_distribution<float> values(0, 5);
  for (uint32_t count : kCounts) {
    for (int round = 0; round < 20; ++round) {
      std::vector<float> logits(count);
      for (float& logit : logits) logit = values(random);
      EXPECT_EQ(found(logits), expected(logits)) << count;
    }
  }
}

TEST(BestLogit, IsTheLowestOfEquals) {
  std::mt19937 random(2);
  for (uint32_t count : kCounts) {
    // Few values: the greatest comes often.
    std::vector<float> logits(count);
    for (float& logit : logits) logit = float(random() % 3) - 3;
    EXPECT_EQ(found(logits), expected(logits)) << count;
    EXPECT_EQ(found(std::vector<float>(count, -2.5f)), 0) << count;
    EXPECT_EQ(found(std::vector<float>(count, -kInfinity)), 0) << count;
    // Zeros are equal whatever their sign.
    std::vector<float> zeros(count, -0.0f);
    zeros.back() = 0.0f;
    EXPECT_EQ(found(zeros), 0) << count;
  }
}

TEST(BestLogit, AnyPlaceCounts) {
  for (uint32_t count : {1u, 17u, 1024u, 1100u, 2500u}) {
    for (uint32_t place = 0; place < count; ++place) {
      std::vector<float> logits(count, -7);
      logits[place] = -6;
      EXPECT_EQ(found(logits), int32_t(place)) << count;
      for (float unusable : {kNan, -kNan, kInfinity}) {
        logits[place] = unusable;
        EXPECT_EQ(found(logits), -1) << count << " " << place;
      }
    }
  }
}

}  // namespace
}  // namespace izh
