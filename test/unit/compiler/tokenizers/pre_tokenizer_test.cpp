// The table of pre-tokenizers, and its patterns in PCRE2's syntax.

#include "compiler/tokenizers/ByteAlphabet.h"
#include "compiler/tokenizers/PreTokenizer.h"
#include <gtest/gtest.h>
#include <set>

using namespace izhc;

namespace {

TEST(PreTokenizerTest, HasEveryNameOnce) {
  std::set<std::string> names;
  for (const PreTokenizer &entry : preTokenizers()) {
    EXPECT_FALSE(entry.patterns.empty());
    for (const char *name : entry.names) {
      EXPECT_TRUE(names.insert(name).second) << name;
      EXPECT_EQ(findPreTokenizer(name), &entry);
    }
  }
  for (const char *name : {"gpt-2", "llama-bpe", "llama3", "qwen2", "smollm"})
    EXPECT_NE(findPreTokenizer(name), nullptr) << name;
  EXPECT_EQ(findPreTokenizer(""), nullptr);
}

TEST(PreTokenizerTest, SpellsOutWhiteSpace) {
  const std::string space = R"(\t-\r\x{85}\p{Z})";
  EXPECT_EQ(toPcre2(R"(\s+(?!\S))"), "[" + space + "]+(?![^" + space + "])");
  EXPECT_EQ(toPcre2(R"( ?[^\s\p{L}]+)"), " ?[^" + space + R"(\p{L}]+)");
  // A backslash before the bracket or another backslash is no class.
  EXPECT_EQ(toPcre2(R"(\[\s)"), R"(\[[)" + space + "]");
  EXPECT_EQ(toPcre2(R"(\\s)"), R"(\\s)");
}

TEST(ByteAlphabetTest, IsThatOfGpt2) {
  EXPECT_EQ(byteCharacter('A'), "A");
  EXPECT_EQ(byteCharacter(' '), "Ġ");
  EXPECT_EQ(byteCharacter('\n'), "Ċ");
  EXPECT_EQ(byteCharacter(0), "Ā");
  EXPECT_EQ(byteCharacter(0x7f), "ġ");
  EXPECT_EQ(byteCharacter(0xad), "Ń");
  EXPECT_EQ(byteCharacter(0xff), "ÿ");
}

TEST(ByteAlphabetTest, ReadsBackEveryByte) {
  for (unsigned byte = 0; byte < 256; ++byte)
    EXPECT_EQ(decodeByteText(byteCharacter(uint8_t(byte))), std::string(1, char(byte)));
  EXPECT_EQ(decodeByteText("a b"), std::nullopt);
  EXPECT_EQ(decodeByteText("日"), std::nullopt);
  EXPECT_EQ(decodeByteText("\xc4"), std::nullopt);
  EXPECT_EQ(decodeByteText("\xc4"
                           "a"),
            std::nullopt);
}

} // namespace
