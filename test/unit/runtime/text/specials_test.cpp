// Special tokens in a text, and what is printed of them.

#include <gtest/gtest.h>

#include "test/unit/runtime/text/tokenizer_builder.h"

namespace izh_test {
namespace {

using Ids = std::vector<int32_t>;

int32_t byte(char c) { return static_cast<uint8_t>(c); }

TEST(SpecialsTest, ReadsControlTokensOnlyWhenAsked) {
  TokenizerBuilder builder = TokenizerBuilder::bytes();
  const int32_t end = static_cast<int32_t>(builder.add("<e>", TokenType::Control));
  const OwnedTokenizer tokenizer(std::move(builder));
  EXPECT_EQ(tokenizer.encode("a<e>b", false, true), (Ids{byte('a'), end, byte('b')}));
  EXPECT_EQ(tokenizer.encode("<e>"), (Ids{byte('<'), byte('e'), byte('>')}));
}

TEST(SpecialsTest, ReadsUserDefinedTokensAlways) {
  TokenizerBuilder builder = TokenizerBuilder::bytes();
  const int32_t two = static_cast<int32_t>(builder.add("  ", TokenType::UserDefined));
  const int32_t four = static_cast<int32_t>(builder.add("    ", TokenType::UserDefined));
  const OwnedTokenizer tokenizer(std::move(builder));
  EXPECT_EQ(tokenizer.encode(std::string(7, ' ')), (Ids{four, two, byte(' ')}));
}

TEST(SpecialsTest, CutsLongerTokensFirstEvenFurtherRight) {
  TokenizerBuilder builder = TokenizerBuilder::bytes();
  builder.add("abc", TokenType::UserDefined);
  const int32_t longer = static_cast<int32_t>(builder.add("cdefg", TokenType::UserDefined));
  const OwnedTokenizer tokenizer(std::move(builder));
  EXPECT_EQ(tokenizer.encode("abcdefg"), (Ids{byte('a'), byte('b'), longer}));
}

TEST(SpecialsTest, FindsEveryTokenOfACrowd) {
  TokenizerBuilder builder = TokenizerBuilder::bytes();
  Ids expected;
  std::string text;
  // Texts that are prefixes of each other and share many starts.
  for (int i = 0; i < 300; ++i) {
    const std::string name = "<" + std::to_string(i) + ">";
    const int32_t id = static_cast<int32_t>(builder.add(name, TokenType::Control));
    text += name + "x";
    expected.insert(expected.end(), {id, byte('x')});
  }
  builder.add("<29", TokenType::Control);
  const OwnedTokenizer tokenizer(std::move(builder));
  EXPECT_EQ(tokenizer.encode(text, false, true), expected);
}

TEST(SpecialsTest, IgnoresATokenThatTheTextEndsInsideOf) {
  TokenizerBuilder builder = TokenizerBuilder::bytes();
  const int32_t end = static_cast<int32_t>(builder.add("<end>", TokenType::Control));
  const OwnedTokenizer tokenizer(std::move(builder));
  EXPECT_EQ(tokenizer.encode("<end><en", false, true), (Ids{end, byte('<'), byte('e'), byte('n')}));
}

TEST(SpecialsTest, PrintsControlTokensOnlyWhenAsked) {
  TokenizerBuilder builder = TokenizerBuilder::bytes();
  const int32_t control = static_cast<int32_t>(builder.add("<e>", TokenType::Control));
  const int32_t user = static_cast<int32_t>(builder.add("<u>", TokenType::UserDefined));
  builder.tables.ends = {static_cast<uint32_t>(control)};
  const OwnedTokenizer tokenizer(std::move(builder));
  EXPECT_EQ(tokenizer.decode({byte('a'), control, user}), "a<u>");
  EXPECT_EQ(tokenizer.decode({byte('a'), control, user}, true), "a<e><u>");
  EXPECT_TRUE(tokenizer->ends_text(control));
  EXPECT_FALSE(tokenizer->ends_text(user));
  EXPECT_FALSE(tokenizer->ends_text(-1));
}

TEST(SpecialsTest, GivesTheLengthOfATokenThatDoesNotFit) {
  TokenizerBuilder builder = TokenizerBuilder::bytes();
  const int32_t word = static_cast<int32_t>(builder.add("hello"));
  const OwnedTokenizer tokenizer(std::move(builder));
  char out[3] = {'x', 'x', 'x'};
  EXPECT_EQ(tokenizer->token_bytes(word, false, out, 2), 5u);
  EXPECT_EQ(std::string(out, 3), "hex");
  EXPECT_EQ(tokenizer->token_bytes(-1, false, out, 3), 0u);
  EXPECT_EQ(tokenizer->token_bytes(1000, false, out, 3), 0u);
}

}  // namespace
}  // namespace izh_test
