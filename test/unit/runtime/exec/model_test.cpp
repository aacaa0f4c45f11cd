// Models through the C API: opening files, facts, hashes.

#include "runtime/exec/model.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "test/unit/runtime/exec/artifact_builder.h"

namespace izh {
namespace {

using test::TestArtifact;

struct TestFile {
  explicit TestFile(const std::vector<uint8_t>& bytes) {
    path = testing::TempDir() + "izh_model_test_" + std::to_string(getpid()) + ".izh";
    FILE* file = fopen(path.c_str(), "wb");
    fwrite(bytes.data(), 1, bytes.size(), file);
    fclose(file);
  }
  ~TestFile() { unlink(path.c_str()); }
  std::string path;
};

TEST(ModelTest, TellsTheFactsOfTheArtifact) {
  const TestFile file(TestArtifact().build());
  izh_model* model = nullptr;
  izh_error error = {};
  ASSERT_EQ(izh_model_open(file.path.c_str(), nullptr, &model, &error), IZH_OK) << error.message;
  izh_model_info info;
  izh_model_get_info(model, &info);
  EXPECT_STREQ(info.architecture, "test");
  EXPECT_STREQ(info.variant, "plain");
  EXPECT_STREQ(info.chat_template, "{{ messages }}");
  EXPECT_STREQ(info.command_line, "izhc compile m.gguf");
  EXPECT_EQ(info.vocabulary, test::kVocabulary);
  EXPECT_EQ(info.context, 1000u);
  EXPECT_EQ(info.cache_bytes_per_token, 4u);
  EXPECT_EQ(info.arena_bytes, 4096u);
  EXPECT_EQ(info.max_step_tokens, 16u);
  EXPECT_EQ(info.variants, 1u);
  EXPECT_TRUE(info.has_tokenizer);
  EXPECT_EQ(model->tokenizer.size, 8u);
  EXPECT_EQ(model->tokenizer[7], 8);
  const char *name = nullptr, *reason = nullptr;
  ASSERT_EQ(izh_model_variant(model, 0, &name, &reason), IZH_OK);
  EXPECT_STREQ(name, "plain");
  EXPECT_STREQ(reason, "");
  EXPECT_EQ(izh_model_variant(model, 1, &name, &reason), IZH_INVALID_ARGUMENT);
  EXPECT_EQ(izh_model_verify(model, &error), IZH_OK) << error.message;
  izh_model_close(model);
}

TEST(ModelTest, IsLookedIntoWithoutAVariantForThisMachine) {
  TestArtifact artifact;
  for (test::TestVariant& variant : artifact.variants) variant.arch = "z80";
  const TestFile file(artifact.build());
  izh_model* model = nullptr;
  izh_error error = {};
  EXPECT_EQ(izh_model_open(file.path.c_str(), nullptr, &model, &error), IZH_UNSUPPORTED_CPU);
  izh_model_options options = {};
  options.no_run = true;
  ASSERT_EQ(izh_model_open(file.path.c_str(), &options, &model, &error), IZH_OK) << error.message;
  izh_model_info info;
  izh_model_get_info(model, &info);
  EXPECT_STREQ(info.variant, "");
  EXPECT_EQ(info.vocabulary, test::kVocabulary);
  const char *name = nullptr, *reason = nullptr;
  ASSERT_EQ(izh_model_variant(model, 0, &name, &reason), IZH_OK);
  EXPECT_NE(strstr(reason, "is for z80"), nullptr) << reason;
  EXPECT_EQ(izh_model_verify(model, &error), IZH_OK) << error.message;
  izh_memory memory;
  EXPECT_EQ(izh_context_memory(model, nullptr, &memory, &error), IZH_OK) << error.message;
  izh_context* context = nullptr;
  EXPECT_EQ(izh_context_create(model, nullptr, &context, &error), IZH_INVALID_ARGUMENT);
  EXPECT_NE(strstr(error.message, "not to be run"), nullptr) << error.message;
  izh_model_close(model);
}

TEST(ModelTest, ChecksCodeOnLoadAndWeightsOnDemand) {
  const TestArtifact artifact;
  std::vector<uint8_t> bytes = artifact.build();
  // Sections follow each other at multiples of 64 KiB from 1 MiB on: code, weights.
  const size_t code = 1 << 20, weights = code + 65536;
  izh_model* model = nullptr;
  izh_error error = {};
  bytes[code] ^= 1;
  EXPECT_EQ(izh_model_open(TestFile(bytes).path.c_str(), nullptr, &model, &error),
            IZH_BAD_ARTIFACT);
  EXPECT_NE(strstr(error.message, "the code of"), nullptr) << error.message;
  bytes[code] ^= 1;
  bytes[weights] ^= 1;
  const TestFile file(bytes);
  ASSERT_EQ(izh_model_open(file.path.c_str(), nullptr, &model, &error), IZH_OK) << error.message;
  EXPECT_EQ(izh_model_verify(model, &error), IZH_BAD_ARTIFACT);
  EXPECT_NE(strstr(error.message, "columns of"), nullptr) << error.message;
  izh_model_close(model);
}

TEST(ModelTest, WorksWithoutATokenizer) {
  TestArtifact artifact;
  artifact.tokenizer.clear();
  const TestFile file(artifact.build());
  izh_model* model = nullptr;
  ASSERT_EQ(izh_model_open(file.path.c_str(), nullptr, &model, nullptr), IZH_OK);
  izh_model_info info;
  izh_model_get_info(model, &info);
  EXPECT_FALSE(info.has_tokenizer);
  izh_model_close(model);
}

TEST(ModelTest, RefusesMissingFilesAndArguments) {
  izh_model* model = nullptr;
  izh_error error = {};
  EXPECT_EQ(izh_model_open("/nonexistent.izh", nullptr, &model, &error), IZH_IO);
  EXPECT_EQ(izh_model_open(nullptr, nullptr, &model, &error), IZH_INVALID_ARGUMENT);
  EXPECT_EQ(izh_model_open("/nonexistent.izh", nullptr, nullptr, &error), IZH_INVALID_ARGUMENT);
  izh_model_close(nullptr);
}

TEST(ModelTest, EndsTheTextLayersObject) {
  const std::vector<uint8_t> bytes = TestArtifact().build();
  const TestFile file(bytes);
  izh_model* model = nullptr;
  ASSERT_EQ(izh_model_open(file.path.c_str(), nullptr, &model, nullptr), IZH_OK);
  static int ended = 0;
  int object = 0;
  model->text_destroy = [](void* text) { ++*static_cast<int*>(text), ++ended; };
  model->text = &object;
  izh_model_close(model);
  EXPECT_EQ(object, 1);
  EXPECT_EQ(ended, 1);
}

}  // namespace
}  // namespace izh
