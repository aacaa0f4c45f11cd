// SentencePiece-style BPE on vocabularies of a few tokens, merged by hand.

#include <gtest/gtest.h>

#include "test/unit/runtime/text/tokenizer_builder.h"

namespace izh_test {
namespace {

using Ids = std::vector<int32_t>;

// As SentencePiece writes a space.
const std::string kSpace = "\xe2\x96\x81";

struct Small {
  TokenizerBuilder builder = TokenizerBuilder::scores();
  int32_t space = add(kSpace, -10);
  int32_t a = add("a", -11);
  int32_t b = add("b", -12);
  int32_t c = add("c", -13);

  int32_t add(const std::string& text, float score) {
    return static_cast<int32_t>(builder.add(text, TokenType::Normal, score));
  }
};

TEST(ScoreBpeTest, MergesTheHighestScoreFirst) {
  Small small;
  const int32_t ab = small.add("ab", -3);
  const int32_t bc = small.add("bc", -2);
  small.builder.tables.add_space_prefix = false;
  const int32_t a = small.a;
  const OwnedTokenizer tokenizer(std::move(small.builder));
  EXPECT_EQ(tokenizer.encode("abc"), (Ids{a, bc}));
  EXPECT_EQ(tokenizer.encode("abbc"), (Ids{ab, bc}));
}

TEST(ScoreBpeTest, MergesTheLeftmostOfEqualScoresFirst) {
  Small small;
  const int32_t aa = small.add("aa", -1);
  const int32_t a = small.a;
  small.builder.tables.add_space_prefix = false;
  const OwnedTokenizer tokenizer(std::move(small.builder));
  EXPECT_EQ(tokenizer.encode("aaa"), (Ids{aa, a}));
}

TEST(ScoreBpeTest, PutsASpaceBeforeTheTextAndAfterControlTokens) {
  Small small;
  const int32_t word = small.add(kSpace + "a", -1);
  const int32_t b = small.b;
  const OwnedTokenizer tokenizer(std::move(small.builder));
  EXPECT_EQ(tokenizer.encode("a"), (Ids{word}));
  EXPECT_EQ(tokenizer.encode("a</s>a", false, true), (Ids{word, 2, word}));
  EXPECT_EQ(tokenizer.encode("ab"), (Ids{word, b}));
  EXPECT_EQ(tokenizer.encode(""), Ids{});
}

TEST(ScoreBpeTest, FallsBackToBytes) {
  Small small;
  small.builder.tables.add_space_prefix = false;
  const int32_t a = small.a;
  const OwnedTokenizer tokenizer(std::move(small.builder));
  // Byte N is token 3 + N.
  EXPECT_EQ(tokenizer.encode("a\n"), (Ids{a, 3 + 0x0a}));
  EXPECT_EQ(tokenizer.encode("\xc3\xa9"), (Ids{3 + 0xc3, 3 + 0xa9}));
  EXPECT_EQ(tokenizer.encode("\xff"
                             "a"),
            (Ids{3 + 0xff, a}));
  EXPECT_EQ(tokenizer.decode({3 + 0xc3, 3 + 0xa9}), "\xc3\xa9");
}

// Where no token has a space inside, words are merged one by one.
TEST(ScoreBpeTest, GivesTheSameTokensWordByWord) {
  const std::string text = "ab  abc ba   a b cab abcabcabc";
  Ids results[2];
  for (const bool by_words : {false, true}) {
    Small small;
    small.add("ab", -3);
    small.add("bc", -2);
    small.add(kSpace + kSpace, -1.5f);
    small.add(kSpace + "a", -2.5f);
    small.add(kSpace + "ab", -1);
    small.builder.tables.words_at_spaces = by_words;
    const OwnedTokenizer tokenizer(std::move(small.builder));
    results[by_words] = tokenizer.encode(text);
    EXPECT_EQ(tokenizer.decode(results[by_words]), text);
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST(ScoreBpeTest, MergesAcrossSpacesWhereTokensDo) {
  Small small;
  small.add("a" + kSpace, -1);
  const int32_t both = small.add("a" + kSpace + "b", -1);
  small.builder.tables.words_at_spaces = false;
  small.builder.tables.add_space_prefix = false;
  const OwnedTokenizer tokenizer(std::move(small.builder));
  EXPECT_EQ(tokenizer.encode("a b"), (Ids{both}));
}

TEST(ScoreBpeTest, MergesAMegabyteOfOneCharacterAtOnce) {
  Small small;
  small.add("aa", -1);
  const int32_t four = small.add("aaaa", -2);
  small.builder.tables.add_space_prefix = false;
  const OwnedTokenizer tokenizer(std::move(small.builder));
  EXPECT_EQ(tokenizer.encode(std::string(size_t{1} << 20, 'a')), Ids(size_t{1} << 18, four));
}

TEST(ScoreBpeTest, DecodesWithoutTheSpaceThatEncodingAdded) {
  Small small;
  const int32_t word = small.add(kSpace + "a", -1);
  small.builder.tables.add_bos = true;
  const int32_t b = small.b;
  const OwnedTokenizer tokenizer(std::move(small.builder));
  EXPECT_EQ(tokenizer.decode({1, word, word}), "a a");
  EXPECT_EQ(tokenizer.decode({word, b}), "ab");
  EXPECT_EQ(tokenizer.decode({b, word}), "b a");
  EXPECT_EQ(tokenizer.decode({1, word}, true), "<s>a");
}

}  // namespace
}  // namespace izh_test
