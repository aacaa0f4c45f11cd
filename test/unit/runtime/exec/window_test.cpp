// Rings of pages: what kernels are told about states with a window, checked on a
// pool that is kept here.

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "runtime/exec/context.h"
#include "test/unit/runtime/exec/artifact_builder.h"

namespace izh {
namespace {

using test::TestArtifact;

constexpr uint32_t kWindow = 100;
// 100 + 15 tokens of a step lie in at most so many pages of 64.
constexpr uint32_t kRing = 3;

// What the tokens of a sequence left in a pool: who wrote a place, and where it
// was in that sequence.
struct Written {
  const izh_sequence* sequence;
  uint32_t position;
};

class WindowTest : public testing::Test {
 protected:
  void SetUp() override {
    TestArtifact artifact;
    artifact.states.push_back(4096);
    artifact.window = kWindow;
    file = artifact.build();
    bytes = aligned_alloc(64, (file.size() + 63) / 64 * 64);
    memcpy(bytes, file.data(), file.size());
    ASSERT_EQ(model_open_memory(static_cast<uint8_t*>(bytes), file.size(), "m.izh", nullptr, true,
                                &model, &error),
              IZH_OK)
        << error.message;
  }

  void TearDown() override {
    izh_context_destroy(context);
    izh_model_close(model);
    free(bytes);
  }

  void create(uint32_t tokens, uint32_t sequences) {
    const izh_context_options options = {1, tokens, sequences};
    ASSERT_EQ(izh_context_create(model, &options, &context, &error), IZH_OK) << error.message;
    ASSERT_EQ(izh_context_memory(model, &options, &memory, &error), IZH_OK) << error.message;
    pool.assign((memory.cache - poolPages(context) * 64 * sizeof(int32_t)) / 4096 * 64, {});
  }

  static uint64_t poolPages(const izh_context* context) { return context->pool_pages; }

  izh_sequence* sequence() {
    izh_sequence* made = nullptr;
    EXPECT_EQ(izh_sequence_create(context, &made, &error), IZH_OK) << error.message;
    return made;
  }

  // A step; then all that its tokens may read must be in the pool.
  void step(izh_sequence* sequence, uint32_t count) {
    const std::vector<int32_t> ids(count, 1);
    const uint32_t first = izh_sequence_length(sequence);
    const izh_input input = {sequence, ids.data(), count, 0};
    ASSERT_EQ(izh_context_run(context, &input, 1, nullptr, &error), IZH_OK) << error.message;
    const int32_t* slots = context->inputs[static_cast<uint32_t>(Input::WindowSlots)];
    const int32_t* pages = context->inputs[static_cast<uint32_t>(Input::WindowPages)];
    for (uint32_t i = 0; i < count; ++i) {
      ASSERT_LT(static_cast<size_t>(slots[i]), pool.size());
      pool[slots[i]] = {sequence, first + i};
    }
    for (uint32_t token = first; token < first + count; ++token) {
      const uint32_t begin = token + 1 > kWindow ? token + 1 - kWindow : 0;
      for (uint32_t key = begin; key <= token; ++key) {
        const Written& found = pool[pages[key / 64] * 64 + key % 64];
        ASSERT_TRUE(found.sequence == sequence && found.position == key)
            << "token " << token << " finds " << found.position << " in the place of " << key;
      }
    }
  }

  std::vector<uint8_t> file;
  void* bytes = nullptr;
  izh_model* model = nullptr;
  izh_context* context = nullptr;
  izh_error error = {};
  izh_memory memory = {};
  std::vector<Written> pool;
};

TEST_F(WindowTest, KeepsWhatIsReadInStepsOfAnySize) {
  create(4000, 2);
  EXPECT_EQ(pool.size(), 2 * kRing * 64u);
  izh_sequence *one = sequence(), *other = sequence();
  std::mt19937 random(1);
  while (izh_sequence_length(one) < 1700) {
    step(one, 1 + random() % 16);
    step(other, 1 + random() % 16);
  }
}

TEST_F(WindowTest, TakesTheSameMemoryForAnyLength) {
  izh_memory one = {}, ten = {};
  const izh_context_options options = {1, 6400, 1}, more = {1, 64000, 1};
  ASSERT_EQ(izh_context_memory(model, &options, &one, &error), IZH_OK);
  ASSERT_EQ(izh_context_memory(model, &more, &ten, &error), IZH_OK);
  EXPECT_EQ(one.cache, 101 * 256u + kRing * 4096);
  EXPECT_EQ(ten.cache, 1001 * 256u + kRing * 4096);
  izh_model_info info = {};
  izh_model_get_info(model, &info);
  EXPECT_EQ(info.cache_bytes_per_token, 4u);
  EXPECT_EQ(info.window_bytes_per_token, 64u);
  EXPECT_EQ(info.window, kWindow);
}

// Where whole sequences take less than rings would, they are kept.
TEST_F(WindowTest, TakesNoMoreThanWholeSequences) {
  create(300, 8);
  EXPECT_EQ(memory.cache, 12 * (256u + 4096));
  EXPECT_EQ(pool.size(), 12 * 64u);
  izh_sequence* one = sequence();
  for (int i = 0; i < 20; ++i) step(one, 15);
  ASSERT_EQ(izh_sequence_truncate(one, 1, &error), IZH_OK) << error.message;
  step(one, 16);
}

// Of 1000 tokens the ring has pages 13 to 15, from token 832 on: 931 is the
// first that sees no token before.
TEST_F(WindowTest, GoesBackAsFarAsTheRingReaches) {
  create(4000, 1);
  izh_sequence* one = sequence();
  for (int i = 0; i < 100; ++i) step(one, 10);
  EXPECT_EQ(izh_sequence_truncate(one, 930, &error), IZH_LIMIT);
  EXPECT_NE(strstr(error.message, "cannot be truncated to 930"), nullptr) << error.message;
  EXPECT_EQ(izh_sequence_length(one), 1000u);
  ASSERT_EQ(izh_sequence_truncate(one, 931, &error), IZH_OK) << error.message;
  step(one, 1);
  // What was overwritten before is still gone.
  EXPECT_EQ(izh_sequence_truncate(one, 900, &error), IZH_LIMIT);
  EXPECT_EQ(izh_sequence_truncate(one, 931, &error), IZH_OK);
  for (int i = 0; i < 40; ++i) step(one, 10);
  ASSERT_EQ(izh_sequence_truncate(one, 0, &error), IZH_OK);
  for (int i = 0; i < 20; ++i) step(one, 8);
  ASSERT_EQ(izh_sequence_truncate(one, 3, &error), IZH_OK) << error.message;
  step(one, 16);
}

// A ring belongs to whoever has the slot now.
TEST_F(WindowTest, GivesARingToTheNextSequence) {
  create(4000, 2);
  izh_sequence *one = sequence(), *other = sequence();
  for (int i = 0; i < 40; ++i) step(one, 16);
  for (int i = 0; i < 20; ++i) step(other, 16);
  izh_sequence_destroy(one);
  izh_sequence* third = sequence();
  for (int i = 0; i < 20; ++i) {
    step(third, 7);
    step(other, 16);
  }
}

TEST_F(WindowTest, RefusesWindowsOutOfRange) {
  for (const bool per_sequence : {false, true}) {
    TestArtifact artifact;
    artifact.window = per_sequence ? 0 : (1u << 30) + 1;
    if (per_sequence) {
      artifact.sequence_states = {128};
      artifact.sequence_window = 5;
    }
    const std::vector<uint8_t> other = artifact.build();
    void* copy = aligned_alloc(64, (other.size() + 63) / 64 * 64);
    memcpy(copy, other.data(), other.size());
    izh_model* refused = nullptr;
    EXPECT_EQ(model_open_memory(static_cast<uint8_t*>(copy), other.size(), "m.izh", nullptr, true,
                                &refused, &error),
              IZH_BAD_ARTIFACT);
    EXPECT_NE(strstr(error.message, "a state's window"), nullptr) << error.message;
    free(copy);
  }
}

}  // namespace
}  // namespace izh
