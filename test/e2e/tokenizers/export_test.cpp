// Tokenizers of folders as keys of a GGUF file: read again they give the ids of the
// library, or no keys are written.

#include "compiler/import/Gguf.h"
#include "compiler/tokenizers/TokenizerKeys.h"
#include "test/e2e/tokenizers/tokenizer_vectors.h"
#include "test/unit/compiler/import/gguf_writer.h"
#include <gmock/gmock.h>

using namespace izhc;
using namespace izhc::test;
using testing::HasSubstr;

namespace {

// A GGUF file of these keys. A value begins with the number of its type.
Bytes fileOf(llvm::ArrayRef<ExportKey> keys) {
  GgufWriter writer;
  for (const ExportKey &key : keys) {
    uint32_t type = 0;
    memcpy(&type, key.value.data(), sizeof(type));
    writer.key(key.name.str(), type, Bytes(key.value.begin() + sizeof(type), key.value.end()));
  }
  return writer.build();
}

// Maps of characters in files of this kind see characters, not graphemes as the
// library of tokenizer.json does; and U+2581 at the end is a space.
bool isReadOtherwise(llvm::StringRef text) {
  return text.contains("\u2581") || text.contains("\u030a") || text.contains("\u3099") ||
         text.contains("\u1161");
}

class Exported : public testing::TestWithParam<const char *> {};

TEST_P(Exported, GivesTheIdsOfTheLibrary) {
  TokenizerVectors vectors(GetParam());
  Bytes file = fileOf(llvm::cantFail(tokenizerKeys(vectors.section, "")));
  auto source = llvm::cantFail(openGgufBytes("exported.gguf", file));
  BuiltTokenizer tokenizer;
  ASSERT_EQ(tokenizer.open(llvm::cantFail(buildTokenizer(*source, tool::changeText))), "");
  bool words = llvm::StringRef(GetParam()).starts_with("words");
  size_t compared = 0;
  for (size_t i = 0; i < vectors.texts.size(); ++i) {
    if (!words && isReadOtherwise(vectors.texts[i]))
      continue;
    EXPECT_EQ(tokenizer.encode(vectors.texts[i], false, vectors.special), vectors.ids[i])
        << "'" << vectors.texts[i] << "'";
    ++compared;
  }
  EXPECT_GT(compared, 30u);
}

INSTANTIATE_TEST_SUITE_P(All, Exported,
                         testing::Values("words", "words-cased", "words-accents", "unigram-split",
                                         "pieces-mapped"));

TEST(ExportedTest, WhatGgufCantSayIsRefused) {
  const std::pair<const char *, const char *> cases[] = {
      {"words-plain", "both begin words and go on with them"},
      {"words-under", "look as if they began words"},
      {"unigram-plain", "puts a space before texts only where there is none"},
      {"unigram-steps", "changes texts by more than a map of characters"},
      {"unigram-words", "tokens that must be whole words"},
      {"pieces-bytes", "tokens of bytes"},
      {"pieces-user", "user-defined pieces"},
      {"bytes-behind", "patterns that have no name"}};
  for (auto [name, problem] : cases) {
    auto keys = tokenizerKeys(TokenizerVectors(name).section, "");
    ASSERT_FALSE(bool(keys)) << name;
    EXPECT_THAT(llvm::toString(keys.takeError()), HasSubstr(problem)) << name;
  }
}

} // namespace
