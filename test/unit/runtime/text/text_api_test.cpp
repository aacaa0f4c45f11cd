// The C API's text functions on an artifact with a small tokenizer.

#include <gtest/gtest.h>

#include <thread>

#include "runtime/exec/model.h"
#include "test/unit/runtime/exec/artifact_builder.h"
#include "test/unit/runtime/text/tokenizer_builder.h"

namespace izh_test {
namespace {

// A model that holds `tokenizer`.
class Model {
 public:
  explicit Model(std::vector<uint8_t> tokenizer) {
    izh::test::TestArtifact artifact;
    artifact.tokenizer = std::move(tokenizer);
    const std::vector<uint8_t> file = artifact.build();
    // The loader wants what a mapping gives: alignment.
    storage_.resize(file.size() / 64 + 2);
    uint8_t* data = storage_[0].bytes;
    memcpy(data, file.data(), file.size());
    izh_error error{};
    if (izh::model_open_memory(data, file.size(), "test.izh", nullptr, false, &model_, &error) !=
        IZH_OK) {
      ADD_FAILURE() << error.message;
      abort();
    }
  }
  Model(const Model&) = delete;
  ~Model() { izh_model_close(model_); }
  operator const izh_model*() const { return model_; }

 private:
  struct alignas(64) Line {
    uint8_t bytes[64];
  };
  std::vector<Line> storage_;
  izh_model* model_ = nullptr;
};

std::vector<uint8_t> section() {
  TokenizerBuilder builder = TokenizerBuilder::bytes();
  builder.merge("a", "b");
  builder.tables.bos = static_cast<int32_t>(builder.add("<s>", TokenType::Control));
  builder.tables.eos = static_cast<int32_t>(builder.add("</s>", TokenType::Control));
  builder.tables.ends = {258};
  builder.tables.add_bos = true;
  return builder.build();
}

TEST(TextApiTest, TokenizesAndSaysHowManyIdsThereAre) {
  const Model model(section());
  const izh_tokenize_options options = {true, true};
  int32_t ids[3] = {-1, -1, -1};
  size_t count = 0;
  ASSERT_EQ(izh_tokenize(model, "ab</s>", 6, &options, ids, 3, &count, nullptr), IZH_OK);
  EXPECT_EQ(count, 3u);
  EXPECT_EQ(ids[0], 257);
  EXPECT_EQ(ids[1], 256);
  EXPECT_EQ(ids[2], 258);
  ids[1] = -1;
  ASSERT_EQ(izh_tokenize(model, "ab</s>", 6, &options, ids, 1, &count, nullptr), IZH_OK);
  EXPECT_EQ(count, 3u);
  EXPECT_EQ(ids[1], -1);
  ASSERT_EQ(izh_tokenize(model, nullptr, 0, nullptr, nullptr, 0, &count, nullptr), IZH_OK);
  EXPECT_EQ(count, 1u);
}

TEST(TextApiTest, GivesBytesOfTokens) {
  const Model model(section());
  char out[8];
  size_t count = 9;
  ASSERT_EQ(izh_token_bytes(model, 256, false, out, sizeof(out), &count, nullptr), IZH_OK);
  EXPECT_EQ(std::string(out, count), "ab");
  ASSERT_EQ(izh_token_bytes(model, 257, false, out, sizeof(out), &count, nullptr), IZH_OK);
  EXPECT_EQ(count, 0u);
  izh_error error{};
  EXPECT_EQ(izh_token_bytes(model, 259, false, out, sizeof(out), &count, &error),
            IZH_INVALID_ARGUMENT);
  EXPECT_NE(std::string(error.message).find("259"), std::string::npos);
  EXPECT_TRUE(izh_token_ends_text(model, 258));
  EXPECT_FALSE(izh_token_ends_text(model, 257));
  EXPECT_EQ(izh_token_bos(model), 257);
  EXPECT_EQ(izh_token_eos(model), 258);
}

TEST(TextApiTest, SaysThatAModelHasNoTokenizerOrABrokenOne) {
  const Model none({});
  size_t count = 0;
  izh_error error{};
  EXPECT_EQ(izh_tokenize(none, "a", 1, nullptr, nullptr, 0, &count, &error), IZH_INVALID_ARGUMENT);
  EXPECT_NE(std::string(error.message).find("no tokenizer"), std::string::npos);
  EXPECT_EQ(izh_token_bos(none), -1);
  const Model broken(std::vector<uint8_t>(64, 1));
  EXPECT_EQ(izh_tokenize(broken, "a", 1, nullptr, nullptr, 0, &count, &error), IZH_BAD_ARTIFACT);
}

TEST(TextApiTest, MakesOneTokenizerForAllThreads) {
  const Model model(section());
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&model] { EXPECT_EQ(izh_token_eos(model), 258); });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace izh_test
