// The sampling chain: each cut by itself, and the distribution of what is drawn.

#include "runtime/text/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include "runtime/include/izh/izh.h"

namespace {

izh_sampler_options plain(float temperature) { return {temperature, 0, 1, 0, 1, 0, 42}; }

struct Sampler {
  Sampler(const izh_sampler_options& options, uint32_t vocabulary) {
    izh_error error{};
    const izh_status status = izh_sampler_create(&options, vocabulary, &sampler, &error);
    if (status != IZH_OK) ADD_FAILURE() << error.message;
  }
  Sampler(const Sampler&) = delete;
  ~Sampler() { izh_sampler_destroy(sampler); }

  int32_t next(const std::vector<float>& logits) {
    return izh_sampler_next(sampler, logits.data());
  }
  // How often each token comes in `draws` draws.
  std::vector<int> count(const std::vector<float>& logits, int draws) {
    std::vector<int> counts(logits.size());
    for (int i = 0; i < draws; ++i) ++counts[static_cast<size_t>(next(logits))];
    return counts;
  }

  izh_sampler* sampler = nullptr;
};

// Logits of these probabilities.
std::vector<float> logs(const std::vector<double>& probabilities) {
  std::vector<float> logits;
  for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p)) + 3.0f);
  return logits;
}

// Checks counts against probabilities within five standard deviations.
void expect_distribution(const std::vector<int>& counts, const std::vector<double>& expected,
                         int draws) {
  for (size_t i = 0; i < counts.size(); ++i) {
    const double deviation = std::sqrt(draws * expected[i] * (1 - expected[i]));
    EXPECT_NEAR(counts[i], draws * expected[i], 5 * deviation + 0.5) << "token " << i;
  }
}

// The first outputs of the authors' code (prng.di.unimi.it) seeded by
// splitmix64 of 0, written out below from its published definition.
TEST(RandomTest, FollowsTheDefinition) {
  uint64_t seed = 0, s[4];
  for (uint64_t& word : s) {
    uint64_t z = (seed += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    word = z ^ (z >> 31);
  }
  // splitmix64's published first output for seed 0.
  EXPECT_EQ(s[0], 0xe220a8397b1dcdafu);
  izh::Random random(0);
  const uint64_t first = s[1] * 5;
  EXPECT_EQ(random.next(), ((first << 7) | (first >> 57)) * 9);
}

TEST(SamplerTest, TakesTheLowestIdOfEqualBestWhenGreedy) {
  Sampler sampler(plain(0), 4);
  EXPECT_EQ(sampler.next({1, 3, 3, 2}), 1);
}

TEST(SamplerTest, NeverChoosesWhatIsNotANumber) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  Sampler greedy(plain(0), 3);
  EXPECT_EQ(greedy.next({nan, -5, nan}), 1);
  EXPECT_EQ(greedy.next({0, infinity, nan}), 1);
  Sampler drawn(plain(1), 3);
  EXPECT_EQ(drawn.next({nan, -5, -infinity}), 1);
  // There is no right answer, but there is one.
  EXPECT_GE(drawn.next({nan, nan, nan}), 0);
}

TEST(SamplerTest, DrawsByProbability) {
  Sampler sampler(plain(1), 4);
  const std::vector<double> p = {0.1, 0.2, 0.3, 0.4};
  expect_distribution(sampler.count(logs(p), 20000), p, 20000);
}

TEST(SamplerTest, DividesLogitsByTheTemperature) {
  Sampler sampler(plain(0.5f), 3);
  // Probabilities squared: 4, 9, 25 of 38.
  expect_distribution(sampler.count(logs({0.2, 0.3, 0.5}), 20000), {4 / 38., 9 / 38., 25 / 38.},
                      20000);
}

TEST(SamplerTest, KeepsTheTopK) {
  izh_sampler_options options = plain(1);
  options.top_k = 2;
  Sampler sampler(options, 4);
  expect_distribution(sampler.count(logs({0.1, 0.3, 0.2, 0.4}), 20000), {0, 3 / 7., 0, 4 / 7.},
                      20000);
}

TEST(SamplerTest, KeepsTheFewestThatReachTopP) {
  izh_sampler_options options = plain(1);
  options.top_p = 0.6f;
  Sampler sampler(options, 4);
  // 0.4 is too little, 0.4 + 0.3 is enough.
  expect_distribution(sampler.count(logs({0.1, 0.3, 0.2, 0.4}), 20000), {0, 3 / 7., 0, 4 / 7.},
                      20000);
}

TEST(SamplerTest, KeepsTopPOfManyTokens) {
  izh_sampler_options options = plain(1);
  options.top_p = 0.5f;
  const uint32_t tokens = 1000;
  Sampler sampler(options, tokens);
  // All equal: half of them, the lowest ids.
  const std::vector<int> counts = sampler.count(std::vector<float>(tokens, 1.0f), 5000);
  int kept = 0;
  for (uint32_t i = 0; i < tokens; ++i) {
    kept += counts[i] > 0;
    if (i > 500) {
      EXPECT_EQ(counts[i], 0) << i;
    }
  }
  EXPECT_GT(kept, 490);
}

TEST(SamplerTest, KeepsWhatIsAtLeastMinPTimesTheBest) {
  izh_sampler_options options = plain(1);
  options.min_p = 0.4f;
  Sampler sampler(options, 4);
  expect_distribution(sampler.count(logs({0.1, 0.3, 0.2, 0.4}), 20000), {0, 3 / 9., 2 / 9., 4 / 9.},
                      20000);
}

TEST(SamplerTest, PenalisesTokensOfTheWindowOnce) {
  izh_sampler_options options = plain(0);
  options.repeat_penalty = 2;
  options.repeat_window = 2;
  Sampler sampler(options, 3);
  izh_sampler_accept(sampler.sampler, 0);
  izh_sampler_accept(sampler.sampler, 0);
  // 4 / 2 is still more than 1.5; twice would not be.
  EXPECT_EQ(sampler.next({4, 1.5f, -1}), 0);
  EXPECT_EQ(sampler.next({4, 2.5f, -1}), 1);
  // Negative logits are multiplied; the window is now 1 and 2.
  EXPECT_EQ(sampler.next({-4, -1.5f, -2}), 2);
  EXPECT_EQ(sampler.next({-4, -2.5f, -2.1f}), 0);
}

TEST(SamplerTest, RepeatsItselfForTheSameSeedOnly) {
  izh_sampler_options options = plain(1);
  const std::vector<float> logits(100, 0.0f);
  std::vector<int32_t> runs[3];
  for (int run = 0; run < 3; ++run) {
    options.seed = run == 2 ? 43 : 42;
    Sampler sampler(options, 100);
    for (int i = 0; i < 20; ++i) runs[run].push_back(sampler.next(logits));
  }
  EXPECT_EQ(runs[0], runs[1]);
  EXPECT_NE(runs[0], runs[2]);
}

// A vocabulary of many blocks and a part of one, with ties among the best.
std::vector<float> manyLogits() {
  std::mt19937 random(5);
  std::normal_distribution<float> values(0, 4);
  std::vector<float> logits(5011);
  for (float& logit : logits) logit = std::round(values(random) * 16) / 16;
  return logits;
}

// What the chain leaves of them by its definition: ids and probabilities.
std::map<int32_t, double> expected_of(const std::vector<float>& logits,
                                      const izh_sampler_options& options) {
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const float x = logits[size_t(a)], y = logits[size_t(b)];
    return x != y ? x > y : a < b;
  });
  if (options.top_k != 0 && options.top_k < order.size()) order.resize(options.top_k);
  const double best = logits[size_t(order[0])];
  auto weight = [&](int32_t id, double scale) {
    return std::exp((logits[size_t(id)] - best) * scale);
  };
  double total = 0, sum = 0;
  for (const int32_t id : order) total += weight(id, 1);
  size_t kept = 0;
  while (kept < order.size() && (kept == 0 || sum < options.top_p * total)) {
    sum += weight(order[kept++], 1);
  }
  order.resize(kept);
  while (weight(order.back(), 1) < options.min_p) order.pop_back();
  std::map<int32_t, double> expected;
  total = 0;
  for (const int32_t id : order) total += weight(id, 1 / double{options.temperature});
  for (const int32_t id : order) {
    expected[id] = weight(id, 1 / double{options.temperature}) / total;
  }
  return expected;
}

TEST(SamplerTest, DrawsFromManyTokensByTheDefinition) {
  const std::vector<float> logits = manyLogits();
  std::vector<izh_sampler_options> chains(8, plain(0.7f));
  chains[1].top_k = 3;
  chains[2].top_k = 40;
  chains[3].top_k = 4000;  // more than there are blocks
  chains[4].top_p = 0.55f;
  chains[5].top_p = 0.97f;  // more tokens than are tried first
  chains[6].min_p = 0.03f;
  chains[7].top_k = 100, chains[7].top_p = 0.9f, chains[7].min_p = 0.01f;
  constexpr int kDraws = 6000;
  for (const izh_sampler_options& chain : chains) {
    Sampler sampler(chain, uint32_t(logits.size()));
    const std::vector<int> counts = sampler.count(logits, kDraws);
    const std::map<int32_t, double> expected = expected_of(logits, chain);
    for (size_t id = 0; id < logits.size(); ++id) {
      const auto found = expected.find(int32_t(id));
      const double p = found == expected.end() ? 0 : found->second;
      ASSERT_TRUE(p > 0 || counts[id] == 0) << id << " of " << expected.size();
      ASSERT_NEAR(counts[id], kDraws * p, 6 * std::sqrt(kDraws * p) + 3) << id;
    }
  }
}

TEST(SamplerTest, DrawsTheLastTokenOfAPartOfABlock) {
  for (uint32_t count : {1u, 31u, 32u, 33u, 70u}) {
    std::vector<float> logits(count, -50);
    logits.back() = 50;
    Sampler sampler(plain(1), count);
    for (int i = 0; i < 10; ++i) EXPECT_EQ(sampler.next(logits), int32_t(count) - 1);
  }
}

TEST(SamplerTest, SurvivesExtremes) {
  constexpr float kMost = std::numeric_limits<float>::max();
  const std::vector<float> logits = {-kMost, kMost, 0, -1, 1};
  for (const float temperature : {1e-38f, 1e-3f, 1e3f, kMost}) {
    for (const float penalty : {1e-30f, 1e30f}) {
      izh_sampler_options options = plain(temperature);
      options.repeat_penalty = penalty;
      options.repeat_window = 5;
      Sampler sampler(options, 5);
      for (int i = 0; i < 50; ++i) {
        const int32_t id = sampler.next(logits);
        ASSERT_TRUE(id >= 0 && id < 5) << id;
      }
    }
  }
}

TEST(LogitBlocksTest, WeighsToAMillionth) {
  const std::vector<float> logits = manyLogits();
  izh::LogitBlocks blocks;
  ASSERT_TRUE(blocks.reserve(uint32_t(logits.size())));
  blocks.assign(logits.data());
  blocks.summarise();
  const double best = *std::max_element(logits.begin(), logits.end());
  for (const double scale : {0.01, 0.3, 1.0, 2.5, 40.0}) {
    double total = 0;
    for (const float logit : logits) total += std::exp((logit - best) * scale);
    EXPECT_NEAR(blocks.weigh(scale), total, 1e-6 * total) << scale;
  }
}

TEST(SamplerTest, RefusesOptionsWithoutMeaning) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<izh_sampler_options> bad(7, plain(1));
  bad[0].temperature = -1;
  bad[1].temperature = nan;
  bad[2].top_p = 0;
  bad[3].top_p = nan;
  bad[4].min_p = 2;
  bad[5].repeat_penalty = 0;
  bad[6].repeat_window = UINT32_MAX;
  for (const izh_sampler_options& options : bad) {
    izh_sampler* sampler;
    izh_error error{};
    EXPECT_EQ(izh_sampler_create(&options, 10, &sampler, &error), IZH_INVALID_ARGUMENT);
    EXPECT_EQ(sampler, nullptr);
    EXPECT_NE(error.message[0], 0);
  }
}

}  // namespace
