// Contexts and sequences: runs of the default test model against sums made
// here, with any number of threads, steps and sequences.

#include "runtime/exec/context.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>

#include "test/unit/runtime/exec/artifact_builder.h"

namespace izh {
namespace {

using test::expectedLogit;
using test::kVocabulary;
using test::TestArtifact;

class ContextTest : public testing::Test {
 protected:
  void SetUp() override { open(TestArtifact()); }

  void TearDown() override {
    izh_context_destroy(context);
    izh_model_close(model);
    free(bytes);
  }

  void open(const TestArtifact& artifact) {
    TearDown();
    context = nullptr;
    model = nullptr;
    const std::vector<uint8_t> file = artifact.build();
    bytes = aligned_alloc(64, (file.size() + 63) / 64 * 64);
    memcpy(bytes, file.data(), file.size());
    ASSERT_EQ(model_open_memory(static_cast<uint8_t*>(bytes), file.size(), "m.izh", nullptr, true,
                                &model, &error),
              IZH_OK)
        << error.message;
  }

  void create(uint32_t threads, uint32_t tokens, uint32_t sequences) {
    izh_context_destroy(context);
    const izh_context_options options = {threads, tokens, sequences};
    ASSERT_EQ(izh_context_create(model, &options, &context, &error), IZH_OK) << error.message;
  }

  izh_sequence* sequence() {
    izh_sequence* made = nullptr;
    EXPECT_EQ(izh_sequence_create(context, &made, &error), IZH_OK) << error.message;
    return made;
  }

  izh_status run(std::vector<izh_input> inputs) {
    size_t rows = 0;
    for (const izh_input& input : inputs) rows += input.outputs;
    logits.assign(rows * kVocabulary, -1.0f);
    return izh_context_run(context, inputs.data(), static_cast<uint32_t>(inputs.size()),
                           logits.data(), &error);
  }

  void expectRow(size_t row, int32_t sum) {
    for (uint32_t column = 0; column < kVocabulary; ++column) {
      ASSERT_EQ(logits[row * kVocabulary + column], expectedLogit(sum, column))
          << "row " << row << " column " << column;
    }
  }

  void* bytes = nullptr;
  izh_model* model = nullptr;
  izh_context* context = nullptr;
  izh_error error = {};
  std::vector<float> logits;
};

std::vector<int32_t> randomIds(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<int32_t> ids(count);
  for (int32_t& id : ids) id = static_cast<int32_t>(random() % kVocabulary);
  return ids;
}

izh_input inputOf(izh_sequence* sequence, const std::vector<int32_t>& ids, uint32_t outputs) {
  return {sequence, ids.data(), static_cast<uint32_t>(ids.size()), outputs};
}

TEST_F(ContextTest, ComputesEveryRowWithAnyNumberOfThreads) {
  const std::vector<int32_t> ids = randomIds(301, 1);
  for (uint32_t threads : {1u, 2u, 5u, 16u}) {
    create(threads, 400, 1);
    EXPECT_EQ(izh_context_threads(context), threads);
    ASSERT_EQ(run({inputOf(sequence(), ids, 301)}), IZH_OK) << error.message;
    int32_t sum = 0;
    for (size_t row = 0; row < ids.size(); ++row) expectRow(row, sum += ids[row]);
  }
}

TEST_F(ContextTest, ContinuesASequenceInChunksOfAnySize) {
  const std::vector<int32_t> ids = randomIds(200, 2);
  for (uint32_t chunk : {1u, 3u, 16u, 17u, 64u}) {
    create(2, 256, 1);
    izh_sequence* s = sequence();
    int32_t sum = 0;
    for (uint32_t done = 0; done < ids.size(); done += chunk) {
      const uint32_t count = std::min<uint32_t>(chunk, ids.size() - done);
      ASSERT_EQ(run({{s, ids.data() + done, count, 1}}), IZH_OK) << error.message;
      for (uint32_t i = 0; i < count; ++i) sum += ids[done + i];
      expectRow(0, sum);
    }
    EXPECT_EQ(izh_sequence_length(s), 200u);
  }
}

TEST_F(ContextTest, GivesTheLowestOfTheBestOfEachRow) {
  const std::vector<int32_t> ids = randomIds(300, 7);
  create(2, 400, 1);
  std::vector<int32_t> best(ids.size(), -2);
  const izh_input input = inputOf(sequence(), ids, 300);
  ASSERT_EQ(izh_context_run_best(context, &input, 1, best.data(), &error), IZH_OK) << error.message;
  int32_t sum = 0;
  for (size_t row = 0; row < ids.size(); ++row) {
    sum += ids[row];
    int32_t expected = 0;
    for (uint32_t column = 1; column < kVocabulary; ++column) {
      if (expectedLogit(sum, column) > expectedLogit(sum, static_cast<uint32_t>(expected))) {
        expected = static_cast<int32_t>(column);
      }
    }
    ASSERT_EQ(best[row], expected) << "row " << row;
  }
  EXPECT_EQ(izh_context_run_best(context, &input, 1, nullptr, &error), IZH_INVALID_ARGUMENT);
}

TEST_F(ContextTest, MixesSequencesInOneStep) {
  create(2, 600, 3);
  izh_sequence* sequences[] = {sequence(), sequence(), sequence()};
  int32_t sums[3] = {};
  std::mt19937 random(3);
  for (int round = 0; round < 60; ++round) {
    std::vector<std::vector<int32_t>> ids;
    std::vector<izh_input> inputs;
    for (int i = 0; i < 3; ++i) ids.push_back(randomIds(random() % 6, random()));
    for (int i = 0; i < 3; ++i) {
      inputs.push_back(inputOf(sequences[i], ids[i], random() % (ids[i].size() + 1)));
    }
    ASSERT_EQ(run(inputs), IZH_OK) << error.message;
    size_t row = 0;
    for (int i = 0; i < 3; ++i) {
      for (size_t token = 0; token < ids[i].size(); ++token) {
        sums[i] += ids[i][token];
        if (token + inputs[i].outputs >= ids[i].size()) expectRow(row++, sums[i]);
      }
    }
  }
}

TEST_F(ContextTest, RunsStepsWithoutOutputs) {
  create(2, 100, 1);
  izh_sequence* s = sequence();
  const std::vector<int32_t> ids = {5, 6, 7};
  ASSERT_EQ(izh_context_run(context, std::vector{inputOf(s, ids, 0)}.data(), 1, nullptr, &error),
            IZH_OK);
  ASSERT_EQ(izh_context_run(context, nullptr, 0, nullptr, &error), IZH_OK);
  ASSERT_EQ(run({inputOf(s, ids, 1)}), IZH_OK);
  expectRow(0, 36);
}

TEST_F(ContextTest, TruncatesAndReusesPages) {
  create(1, 128, 2);
  izh_sequence *a = sequence(), *b = sequence();
  const std::vector<int32_t> long_ids = randomIds(120, 4), ids = {1, 2, 3};
  ASSERT_EQ(run({inputOf(a, long_ids, 1)}), IZH_OK);
  ASSERT_EQ(run({inputOf(b, randomIds(20, 5), 1)}), IZH_CONTEXT_FULL);
  ASSERT_EQ(izh_sequence_truncate(a, 2, &error), IZH_OK);
  EXPECT_EQ(izh_sequence_length(a), 2u);
  ASSERT_EQ(run({inputOf(b, long_ids, 1)}), IZH_OK) << error.message;
  int32_t sum = 0;
  for (int32_t id : long_ids) sum += id;
  expectRow(0, sum);
  ASSERT_EQ(run({inputOf(a, ids, 1)}), IZH_OK);
  expectRow(0, long_ids[0] + long_ids[1] + 6);
  EXPECT_EQ(izh_sequence_truncate(a, 6, &error), IZH_INVALID_ARGUMENT);
  izh_sequence_destroy(b);
  izh_sequence* c = sequence();
  ASSERT_EQ(run({inputOf(c, ids, 1)}), IZH_OK);
  expectRow(0, 6);
}

// What a state of one size holds can't be taken back, but for all of it.
TEST_F(ContextTest, TruncatesSequencesWithAFixedStateToNothingOnly) {
  TestArtifact artifact;
  artifact.sequence_states = {128};
  open(artifact);
  create(1, 256, 1);
  izh_sequence* one = sequence();
  const int32_t ids[] = {1, 2, 3};
  ASSERT_EQ(run({{one, ids, 3, 1}}), IZH_OK);
  EXPECT_EQ(izh_sequence_truncate(one, 3, &error), IZH_OK);
  EXPECT_EQ(izh_sequence_truncate(one, 2, &error), IZH_LIMIT);
  EXPECT_TRUE(strstr(error.message, "truncate it to 0")) << error.message;
  EXPECT_EQ(izh_sequence_length(one), 3u);
  EXPECT_EQ(izh_sequence_truncate(one, 0, &error), IZH_OK);
  EXPECT_EQ(izh_sequence_length(one), 0u);
}

// Each sequence of a step has one entry, with a slot that no other has.
TEST_F(ContextTest, GivesEachSequenceASlot) {
  create(1, 256, 3);
  izh_sequence *first = sequence(), *second = sequence();
  izh_sequence_destroy(first);
  izh_sequence *third = sequence(), *fourth = sequence();
  EXPECT_EQ(second->slot, 1u);
  EXPECT_EQ(third->slot, 0u);
  EXPECT_EQ(fourth->slot, 2u);
  const int32_t ids[] = {1, 2, 3};
  ASSERT_EQ(run({{second, ids, 2, 0}}), IZH_OK);
  ASSERT_EQ(run({{fourth, ids, 3, 1}, {second, ids, 1, 1}}), IZH_OK);
  const int32_t* entries = context->inputs[static_cast<uint32_t>(Input::Sequences)];
  const int32_t expected[] = {0, 3, 0, 2, 3, 1, 2, 1};
  EXPECT_EQ(memcmp(entries, expected, sizeof(expected)), 0);
}

TEST_F(ContextTest, FillsTheContextToTheLastToken) {
  create(2, 100, 2);
  izh_sequence *a = sequence(), *b = sequence();
  const std::vector<int32_t> most = randomIds(99, 6), one = {3};
  ASSERT_EQ(run({inputOf(a, most, 1), inputOf(b, one, 1)}), IZH_OK) << error.message;
  expectRow(1, 3);
  EXPECT_EQ(run({inputOf(a, one, 1)}), IZH_CONTEXT_FULL);
  EXPECT_NE(strstr(error.message, "holds 100 tokens, 100 are in use and 1 more"), nullptr)
      << error.message;
  EXPECT_EQ(izh_sequence_length(a), 99u);
}

TEST_F(ContextTest, LeavesSequencesUnchangedOnFailure) {
  create(1, 100, 2);
  izh_sequence *a = sequence(), *b = sequence();
  const std::vector<int32_t> ids = {1, 2}, bad = {1, static_cast<int32_t>(kVocabulary)},
                             negative = {-1};
  EXPECT_EQ(run({inputOf(a, ids, 1), inputOf(b, bad, 1)}), IZH_INVALID_ARGUMENT);
  EXPECT_NE(strstr(error.message, "token 1 of input 1 has id 24"), nullptr) << error.message;
  EXPECT_EQ(run({inputOf(a, negative, 1)}), IZH_INVALID_ARGUMENT);
  EXPECT_EQ(run({inputOf(a, ids, 1), inputOf(a, ids, 1)}), IZH_INVALID_ARGUMENT);
  EXPECT_EQ(run({inputOf(a, ids, 3)}), IZH_INVALID_ARGUMENT);
  EXPECT_EQ(run({inputOf(nullptr, ids, 1)}), IZH_INVALID_ARGUMENT);
  const izh_input none = {a, nullptr, 3, 0}, rows = inputOf(a, ids, 1);
  EXPECT_EQ(izh_context_run(context, &none, 1, nullptr, &error), IZH_INVALID_ARGUMENT);
  EXPECT_EQ(izh_context_run(context, &rows, 1, nullptr, &error), IZH_INVALID_ARGUMENT);
  EXPECT_EQ(izh_sequence_length(a), 0u);
  EXPECT_EQ(izh_sequence_length(b), 0u);
  ASSERT_EQ(run({inputOf(a, ids, 1)}), IZH_OK);
  expectRow(0, 3);
}

TEST_F(ContextTest, KeepsToTheSequencesAskedFor) {
  create(1, 100, 2);
  izh_sequence* a = sequence();
  (void)sequence();
  izh_sequence* third = nullptr;
  EXPECT_EQ(izh_sequence_create(context, &third, &error), IZH_LIMIT);
  EXPECT_EQ(third, nullptr);
  izh_sequence_destroy(a);
  EXPECT_NE(sequence(), nullptr);
  izh_sequence_destroy(nullptr);
}

TEST_F(ContextTest, ChoosesSizesByItself) {
  ASSERT_EQ(izh_context_create(model, nullptr, &context, &error), IZH_OK) << error.message;
  EXPECT_EQ(izh_context_tokens(context), 1000u);
  EXPECT_GE(izh_context_threads(context), 1u);
}

TEST_F(ContextTest, RefusesMoreThanTheMachineHas) {
  izh_context_options options = {1, 1u << 31, 1};
  EXPECT_EQ(izh_context_create(model, &options, &context, &error), IZH_LIMIT);
  TestArtifact artifact;
  artifact.states[0] = uint64_t{1} << 32;
  open(artifact);
  options = {1, 1u << 24, 1};
  EXPECT_EQ(izh_context_create(model, &options, &context, &error), IZH_OUT_OF_MEMORY);
  EXPECT_NE(strstr(error.message, "ask for fewer tokens"), nullptr) << error.message;
  artifact = TestArtifact();
  artifact.arena_bytes = uint64_t{1} << 40;
  open(artifact);
  options = {1, 64, 1};
  EXPECT_EQ(izh_context_create(model, &options, &context, &error), IZH_OUT_OF_MEMORY);
  options = {5000, 64, 1};
  open(TestArtifact());
  EXPECT_EQ(izh_context_create(model, &options, &context, &error), IZH_LIMIT);
  EXPECT_EQ(context, nullptr);
}

TEST_F(ContextTest, TellsBeforehandWhatItTakes) {
  TestArtifact artifact;
  artifact.states[0] = 4096;
  artifact.arena_bytes = 1 << 20;
  open(artifact);
  const izh_context_options options = {1, 640, 2};
  izh_memory memory = {};
  ASSERT_EQ(izh_context_memory(model, &options, &memory, &error), IZH_OK) << error.message;
  EXPECT_EQ(memory.buffers, uint64_t{1} << 20);
  uint64_t page = 0;
  for (uint64_t bytes : artifact.states) page += bytes;
  // Ten pages, and one that may be partly empty for each sequence.
  EXPECT_EQ(memory.cache, 12 * page);
  EXPECT_EQ(memory.file, model->image.size);
  EXPECT_TRUE(memory.file_mapped);
  EXPECT_EQ(memory.peak, memory.buffers + memory.cache + memory.file);
  EXPECT_GT(memory.limit, 0u);
  const izh_context_options absurd = {1, UINT32_MAX, 1};
  EXPECT_EQ(izh_context_memory(model, &absurd, &memory, &error), IZH_LIMIT);
}

TEST_F(ContextTest, SharesAModelBetweenContexts) {
  create(2, 100, 1);
  izh_context* other = nullptr;
  const izh_context_options options = {3, 100, 1};
  ASSERT_EQ(izh_context_create(model, &options, &other, &error), IZH_OK);
  izh_sequence *a = sequence(), *b = nullptr;
  ASSERT_EQ(izh_sequence_create(other, &b, &error), IZH_OK);
  const std::vector<int32_t> ids = {4};
  EXPECT_EQ(run({inputOf(b, ids, 1)}), IZH_INVALID_ARGUMENT);
  ASSERT_EQ(run({inputOf(a, ids, 1)}), IZH_OK);
  expectRow(0, 4);
  const izh_input input = inputOf(b, ids, 1);
  ASSERT_EQ(izh_context_run(other, &input, 1, logits.data(), &error), IZH_OK);
  expectRow(0, 4);
  izh_context_destroy(other);
}

}  // namespace
}  // namespace izh
