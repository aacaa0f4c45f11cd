// Byte-level BPE on vocabularies of a few tokens, merged by hand.

#include <gtest/gtest.h>

#include "test/unit/runtime/text/tokenizer_builder.h"

namespace izh_test {
namespace {

using Ids = std::vector<int32_t>;

int32_t byte(char c) { return static_cast<uint8_t>(c); }

TEST(ByteBpeTest, MergesTheLowestRankFirst) {
  TokenizerBuilder builder = TokenizerBuilder::bytes();
  const int32_t bc = builder.merge("b", "c");
  const int32_t ab = builder.merge("a", "b");
  const int32_t abc = builder.merge("a", "bc");
  const OwnedTokenizer tokenizer(std::move(builder));
  // b+c goes before a+b, so that "ab" never comes to be.
  EXPECT_EQ(tokenizer.encode("abc"), (Ids{abc}));
  EXPECT_EQ(tokenizer.encode("abbc"), (Ids{ab, bc}));
  EXPECT_EQ(tokenizer.encode("ba"), (Ids{byte('b'), byte('a')}));
}

TEST(ByteBpeTest, MergesTheLeftmostOfEqualPairsFirst) {
  TokenizerBuilder builder = TokenizerBuilder::bytes();
  const int32_t aa = builder.merge("a", "a");
  const OwnedTokenizer tokenizer(std::move(builder));
  EXPECT_EQ(tokenizer.encode("aaa"), (Ids{aa, byte('a')}));
}

TEST(ByteBpeTest, MergesAMegabyteOfOneCharacterAtOnce) {
  TokenizerBuilder builder = TokenizerBuilder::bytes();
  builder.merge("a", "a");
  builder.merge("aa", "aa");
  const int32_t eight = builder.merge("aaaa", "aaaa");
  const OwnedTokenizer tokenizer(std::move(builder));
  const size_t eights = size_t{1} << 17;
  Ids expected(eights, eight);
  expected.push_back(byte('a'));
  EXPECT_EQ(tokenizer.encode(std::string(eights * 8 + 1, 'a')), expected);
}

// The heap is used for long words, a scan for short ones: they may not differ.
TEST(ByteBpeTest, MergesLongAndShortWordsAlike) {
  TokenizerBuilder builder = TokenizerBuilder::bytes();
  builder.merge("b", "a");
  builder.merge("a", "b");
  builder.merge("ab", "ab");
  builder.merge("ba", "c");
  builder.tables.patterns = {"[^|]+"};
  const OwnedTokenizer tokenizer(std::move(builder));
  const std::string part = "abcabbacabab|";
  std::string text;
  Ids expected;
  const Ids once = tokenizer.encode(part);
  // Nothing merges across the end of `part`: a word boundary is there.
  std::string unsplit;
  for (int i = 0; i < 20; ++i) {
    text += part;
    expected.insert(expected.end(), once.begin(), once.end());
  }
  EXPECT_EQ(tokenizer.encode(text), expected);
  TokenizerBuilder whole = TokenizerBuilder::bytes();
  whole.merge("b", "a");
  whole.merge("a", "b");
  whole.merge("ab", "ab");
  whole.merge("ba", "c");
  const OwnedTokenizer one_word(std::move(whole));
  EXPECT_EQ(one_word.encode(text), expected);
}

TEST(ByteBpeTest, SplitsWordsByEachPatternInTurn) {
  TokenizerBuilder builder = TokenizerBuilder::bytes();
  builder.merge("1", "2");
  const int32_t ab = builder.merge("a", "b");
  builder.merge(" ", " ");
  const int32_t word = builder.merge(" ", "ab");
  builder.tables.patterns = {"\\p{N}", " ?\\p{L}+"};
  const OwnedTokenizer tokenizer(std::move(builder));
  // Digits stand alone; of three spaces the last belongs to the word.
  EXPECT_EQ(tokenizer.encode("ab12   ab"),
            (Ids{ab, byte('1'), byte('2'), static_cast<int32_t>(258), word}));
}

TEST(ByteBpeTest, TakesWholeWordsThatAreTokensAsTheyAre) {
  for (const bool whole : {false, true}) {
    TokenizerBuilder builder = TokenizerBuilder::bytes();
    const int32_t abc = builder.add("abc");
    const int32_t ab = builder.merge("a", "b");
    builder.tables.patterns = {" ?\\p{L}+"};
    builder.tables.whole_words = whole;
    const OwnedTokenizer tokenizer(std::move(builder));
    EXPECT_EQ(tokenizer.encode("abc"), whole ? (Ids{abc}) : (Ids{ab, byte('c')}));
  }
}

TEST(ByteBpeTest, ReplacesBytesThatAreNotUtf8) {
  const OwnedTokenizer tokenizer(TokenizerBuilder::bytes());
  const Ids replacement = {0xef, 0xbf, 0xbd};
  EXPECT_EQ(tokenizer.encode("\xff"), replacement);
  EXPECT_EQ(tokenizer.encode("\xe2\x82"), (Ids{0xef, 0xbf, 0xbd, 0xef, 0xbf, 0xbd}));
  EXPECT_EQ(tokenizer.encode("\xe2\x82\xac"), (Ids{0xe2, 0x82, 0xac}));
  EXPECT_EQ(tokenizer.encode(std::string(1, '\0')), (Ids{0}));
  EXPECT_EQ(tokenizer.encode(""), Ids{});
}

TEST(ByteBpeTest, GivesUnknownForBytesWithoutAToken) {
  TokenizerBuilder builder = TokenizerBuilder::bytes();
  builder.tables.byte_tokens['x'] = -1;
  builder.tables.unk = 7;
  const OwnedTokenizer tokenizer(std::move(builder));
  EXPECT_EQ(tokenizer.encode("axb"), (Ids{byte('a'), 7, byte('b')}));
}

TEST(ByteBpeTest, AddsBeginAndEndOnlyWhenAsked) {
  TokenizerBuilder builder = TokenizerBuilder::bytes();
  builder.tables.bos = static_cast<int32_t>(builder.add("<s>", TokenType::Control));
  builder.tables.eos = static_cast<int32_t>(builder.add("</s>", TokenType::Control));
  builder.tables.add_bos = builder.tables.add_eos = true;
  const OwnedTokenizer tokenizer(std::move(builder));
  EXPECT_EQ(tokenizer.encode("a", true), (Ids{256, byte('a'), 257}));
  EXPECT_EQ(tokenizer.encode("a", false), (Ids{byte('a')}));
}

TEST(ByteBpeTest, RefusesATextTooLongToIndex) {
  const OwnedTokenizer tokenizer(TokenizerBuilder::bytes());
  izh::Array<int32_t> ids;
  izh_error error{};
  // Refused by its length alone: the bytes are never looked at.
  EXPECT_EQ(tokenizer->encode("", izh::Tokenizer::kMaxTextBytes + 1, {}, &ids, &error), IZH_LIMIT);
}

}  // namespace
}  // namespace izh_test
