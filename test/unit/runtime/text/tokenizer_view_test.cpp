// Sections that contradict themselves are refused, and none does harm.

#include "runtime/text/tokenizer_view.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>

#include "test/unit/runtime/text/tokenizer_builder.h"

namespace izh_test {
namespace {

// The sentence with which a section is refused, or "" if it isn't.
std::string refusal(const std::vector<uint8_t>& section) {
  izh::Tokenizer* tokenizer = nullptr;
  izh_error error{};
  const izh_status status =
      izh::Tokenizer::create(section.data(), section.size(), &tokenizer, &error);
  EXPECT_EQ(status == IZH_OK, tokenizer != nullptr);
  izh::Tokenizer::destroy(tokenizer);
  return status == IZH_OK ? "" : error.message;
}

TokenizerBuilder sample() {
  TokenizerBuilder builder = TokenizerBuilder::bytes();
  builder.merge("a", "b");
  builder.add("<e>", TokenType::Control);
  builder.tables.patterns = {"\\p{N}", " ?\\p{L}+"};
  return builder;
}

TEST(TokenizerViewTest, AcceptsWhatTheBuilderMakes) { EXPECT_EQ(refusal(sample().build()), ""); }

TEST(TokenizerViewTest, RefusesIdsThatAreNoTokens) {
  const std::function<void(TokenizerBuilder&)> spoil[] = {
      [](TokenizerBuilder& b) { b.tables.bos = 100000; },
      [](TokenizerBuilder& b) { b.tables.eos = -2; },
      [](TokenizerBuilder& b) { b.tables.add_bos = true; },
      [](TokenizerBuilder& b) { b.tables.byte_tokens[7] = 258; },
      [](TokenizerBuilder& b) { b.tables.byte_tokens.pop_back(); },
      [](TokenizerBuilder& b) { b.tables.ends = {258}; },
      [](TokenizerBuilder& b) { b.tables.merges.emplace_back(1, 2, 258); },
      [](TokenizerBuilder& b) { b.tables.types[3] = 9; },
      [](TokenizerBuilder& b) { b.tables.kind = izh::schema::TokenizerKind::WordPiece; },
      [](TokenizerBuilder& b) {
        b.tables.kind = izh::schema::TokenizerKind::ScoreBpe;
        b.tables.scores.pop_back();
      },
  };
  for (const auto& change : spoil) {
    TokenizerBuilder builder = sample();
    change(builder);
    EXPECT_NE(refusal(builder.build()), "");
  }
}

TEST(TokenizerViewTest, AsksForANewFileInPlaceOfAnOlderFormat) {
  TokenizerBuilder builder = sample();
  builder.has_tries = false;
  EXPECT_NE(refusal(builder.build()).find("of an older format"), std::string::npos);
  // Without special tokens there is nothing to look up.
  TokenizerBuilder plain = TokenizerBuilder::bytes();
  plain.has_tries = false;
  EXPECT_EQ(refusal(plain.build()), "");
}

TEST(TokenizerViewTest, RefusesSpecialTokensThatWouldCutCharacters) {
  TokenizerBuilder builder = sample();
  builder.add("\x82", TokenType::UserDefined);
  EXPECT_NE(refusal(builder.build()), "");
  TokenizerBuilder empty = sample();
  empty.add("", TokenType::UserDefined);
  EXPECT_NE(refusal(empty.build()), "");
}

TEST(TokenizerViewTest, NamesAPatternThatDoesNotCompile) {
  TokenizerBuilder builder = sample();
  builder.tables.patterns.push_back("(");
  EXPECT_NE(refusal(builder.build()).find("pattern 2"), std::string::npos);
}

TEST(TokenizerViewTest, EndsAPatternThatGoesBackTooOften) {
  TokenizerBuilder builder = sample();
  builder.tables.patterns = {"(a|a)+[b-d]"};
  const OwnedTokenizer tokenizer(std::move(builder));
  const std::string text(100, 'a');
  izh::Array<int32_t> ids;
  izh_error error{};
  EXPECT_EQ(tokenizer->encode(text.data(), text.size(), {}, &ids, &error), IZH_LIMIT);
}

TEST(TokenizerViewTest, RefusesEveryPrefix) {
  const std::vector<uint8_t> whole = sample().build();
  for (size_t size = 0; size < whole.size(); size += 7) {
    const std::vector<uint8_t> part(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size));
    EXPECT_NE(refusal(part), "") << size;
  }
}

// Whatever is accepted can be used: nothing is read outside of the section.
TEST(TokenizerViewTest, SurvivesRandomDamage) {
  const std::vector<uint8_t> whole = sample().build();
  std::mt19937 random(1);
  const uint32_t extremes[] = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff};
  for (int round = 0; round < 3000; ++round) {
    std::vector<uint8_t> section = whole;
    const size_t at = random() % (section.size() - 4);
    if (round % 2) {
      section[at] = static_cast<uint8_t>(random());
    } else {
      memcpy(&section[at & ~size_t{3}], &extremes[random() % 5], 4);
    }
    izh::Tokenizer* tokenizer;
    if (izh::Tokenizer::create(section.data(), section.size(), &tokenizer, nullptr) != IZH_OK) {
      continue;
    }
    const std::string text = "ab 12 <e> \xff xyz";
    izh::Array<int32_t> ids;
    izh::Array<char> back;
    (void)tokenizer->encode(text.data(), text.size(), {}, &ids, nullptr);
    (void)tokenizer->decode(ids.data(), ids.size(), true, &back);
    izh::Tokenizer::destroy(tokenizer);
  }
}

}  // namespace
}  // namespace izh_test
