// Slot tables are filled by plain linear probing at half load, and every unit
// of a trie has a block of its own for its children.

#include "test/unit/runtime/text/tokenizer_builder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "runtime/schema/byte_trie.h"
#include "runtime/schema/tokenizer_hash.h"

namespace izh_test {
namespace schema = izh::schema;

TokenizerBuilder TokenizerBuilder::bytes() {
  TokenizerBuilder builder(schema::TokenizerKind::ByteBpe);
  for (int byte = 0; byte < 256; ++byte) {
    builder.tables.byte_tokens.push_back(byte);
    builder.add(std::string(1, static_cast<char>(byte)));
  }
  return builder;
}

TokenizerBuilder TokenizerBuilder::scores() {
  TokenizerBuilder builder(schema::TokenizerKind::ScoreBpe);
  builder.add("<unk>", TokenType::Unknown);
  builder.add("<s>", TokenType::Control);
  builder.add("</s>", TokenType::Control);
  for (int byte = 0; byte < 256; ++byte) {
    char text[8];
    snprintf(text, sizeof(text), "<0x%02X>", byte);
    builder.tables.byte_tokens.push_back(static_cast<int32_t>(builder.add(text, TokenType::Byte)));
  }
  builder.tables.unk = 0;
  builder.tables.bos = 1;
  builder.tables.eos = 2;
  builder.tables.ends = {2};
  builder.tables.add_space_prefix = true;
  builder.tables.words_at_spaces = true;
  return builder;
}

uint32_t TokenizerBuilder::add(const std::string& text, TokenType type, float score) {
  texts.push_back(text);
  tables.types.push_back(static_cast<uint8_t>(type));
  tables.scores.push_back(score);
  return static_cast<uint32_t>(texts.size() - 1);
}

uint32_t TokenizerBuilder::id(const std::string& text) const {
  return static_cast<uint32_t>(std::find(texts.begin(), texts.end(), text) - texts.begin());
}

uint32_t TokenizerBuilder::merge(const std::string& left, const std::string& right) {
  const uint32_t known = id(left + right);
  const uint32_t result = known < texts.size() ? known : add(left + right);
  tables.merges.emplace_back(id(left), id(right), result);
  return result;
}

static void place(uint64_t hash, uint32_t value, std::vector<uint32_t>* slots) {
  uint32_t slot = schema::home_slot(hash, static_cast<uint32_t>(slots->size()));
  while ((*slots)[slot]) slot = (slot + 1) % slots->size();
  (*slots)[slot] = schema::make_slot(hash, value);
}

std::vector<uint64_t> make_trie(const std::vector<std::string>& texts) {
  std::vector<uint64_t> units(2 * schema::kTrieBlock);
  units[0] = schema::with_base(0, schema::kTrieBlock);
  for (uint32_t i = 0; i < texts.size(); ++i) {
    uint32_t unit = 0;
    for (const char c : texts[i]) {
      const auto byte = static_cast<uint8_t>(c);
      if (schema::base_of(units[unit]) == 0) {
        units[unit] = schema::with_base(units[unit], static_cast<uint32_t>(units.size()));
        units.resize(units.size() + schema::kTrieBlock);
      }
      unit = schema::base_of(units[unit]) ^ byte;
      units[unit] |= schema::make_trie_unit(byte);
    }
    if (schema::value_of(units[unit]) < 0) units[unit] = schema::with_value(units[unit], i);
  }
  return units;
}

std::vector<uint8_t> TokenizerBuilder::build() {
  std::string text;
  std::vector<uint32_t> offsets = {0}, specials;
  std::vector<uint32_t> token_slots(2 * texts.size() + 1);
  std::vector<uint32_t> merge_slots(2 * tables.merges.size() + 1);
  for (uint32_t i = 0; i < texts.size(); ++i) {
    text += texts[i];
    offsets.push_back(static_cast<uint32_t>(text.size()));
    auto* bytes = reinterpret_cast<const uint8_t*>(texts[i].data());
    place(schema::hash_bytes(bytes, texts[i].size()), i, &token_slots);
    const auto type = static_cast<TokenType>(tables.types[i]);
    if (type == TokenType::Control || type == TokenType::UserDefined ||
        type == TokenType::Unknown) {
      specials.push_back(i);
    }
  }
  std::sort(specials.begin(), specials.end(),
            [&](uint32_t a, uint32_t b) { return texts[a] < texts[b]; });
  for (uint32_t i = 0; i < tables.merges.size(); ++i) {
    const schema::Merge& merge = tables.merges[i];
    place(schema::hash_pair(merge.left(), merge.right()), i, &merge_slots);
  }
  std::vector<std::string> special_texts;
  for (const uint32_t id : specials) special_texts.push_back(texts[id]);
  const std::vector<uint64_t> special_trie = make_trie(special_texts), pieces = make_trie(texts);
  flatbuffers::FlatBufferBuilder builder;
  auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
  schema::FinishTokenizerBuffer(
      builder, schema::CreateTokenizer(
                   builder, tables.kind, builder.CreateVector(offsets),
                   builder.CreateVector(bytes, text.size()), builder.CreateVector(tables.types),
                   builder.CreateVector(tables.scores), builder.CreateVector(token_slots),
                   builder.CreateVectorOfStructs(tables.merges), builder.CreateVector(merge_slots),
                   builder.CreateVector(tables.byte_tokens), builder.CreateVector(specials),
                   builder.CreateVectorOfStrings(tables.patterns), tables.whole_words,
                   tables.words_at_spaces, tables.add_bos, tables.add_eos, tables.add_space_prefix,
                   tables.bos, tables.eos, -1, tables.unk, -1, builder.CreateVector(tables.ends),
                   false, false, false, false, 0, 0, 0, 0, 0, 0, 0, 0, false, 0, 100,
                   has_tries ? builder.CreateVector(pieces) : 0,
                   has_tries ? builder.CreateVector(special_trie) : 0));
  return {builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()};
}

OwnedTokenizer::OwnedTokenizer(TokenizerBuilder builder) : section_(builder.build()) {
  izh_error error{};
  const izh_status status =
      izh::Tokenizer::create(section_.data(), section_.size(), &tokenizer_, &error);
  if (status != IZH_OK) {
    ADD_FAILURE() << error.message;
    abort();
  }
}

OwnedTokenizer::~OwnedTokenizer() { izh::Tokenizer::destroy(tokenizer_); }

std::vector<int32_t> OwnedTokenizer::encode(const std::string& text, bool bos, bool special) const {
  izh::Array<int32_t> ids;
  izh_error error{};
  EXPECT_EQ(tokenizer_->encode(text.data(), text.size(), {bos, special}, &ids, &error), IZH_OK)
      << error.message;
  return {ids.begin(), ids.end()};
}

std::string OwnedTokenizer::decode(const std::vector<int32_t>& ids, bool special) const {
  izh::Array<char> text;
  EXPECT_TRUE(tokenizer_->decode(ids.data(), ids.size(), special, &text));
  return {text.begin(), text.end()};
}

}  // namespace izh_test
