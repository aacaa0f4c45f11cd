// Makes small tokenizer sections: what the compiler would write, from a list of
// tokens. Ids are given in the order of the calls.

#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/schema/tokenizer_generated.h"
#include "runtime/text/tokenizer.h"

namespace izh_test {

using izh::schema::TokenType;

// The fields of schema::Tokenizer that are not made from the list of tokens.
struct TokenizerFields {
  izh::schema::TokenizerKind kind = izh::schema::TokenizerKind::ByteBpe;
  std::vector<uint8_t> types;
  std::vector<float> scores;
  std::vector<izh::schema::Merge> merges;
  std::vector<int32_t> byte_tokens;
  std::vector<std::string> patterns;
  std::vector<uint32_t> ends;
  bool whole_words = false;
  bool words_at_spaces = false;
  bool add_bos = false;
  bool add_eos = false;
  bool add_space_prefix = false;
  int32_t bos = -1;
  int32_t eos = -1;
  int32_t unk = -1;
};

// A trie (runtime/schema/byte_trie.h) of texts with their indices; of equal ones
// the first.
std::vector<uint64_t> make_trie(const std::vector<std::string>& texts);

struct TokenizerBuilder {
  explicit TokenizerBuilder(izh::schema::TokenizerKind kind) { tables.kind = kind; }

  // A vocabulary that starts with the 256 bytes, in order.
  static TokenizerBuilder bytes();
  // One that starts with <unk>, <s>, </s> and 256 byte tokens <0xNN>.
  static TokenizerBuilder scores();

  uint32_t add(const std::string& text, TokenType type = TokenType::Normal, float score = 0);
  // Adds left + right with the next rank, and its token if it is new.
  uint32_t merge(const std::string& left, const std::string& right);
  uint32_t id(const std::string& text) const;

  // The section, 8-byte aligned.
  std::vector<uint8_t> build();

  TokenizerFields tables;
  std::vector<std::string> texts;
  // Older files have none.
  bool has_tries = true;
};

// A tokenizer over a section of its own; fails the test if it is refused.
class OwnedTokenizer {
 public:
  explicit OwnedTokenizer(TokenizerBuilder builder);
  OwnedTokenizer(const OwnedTokenizer&) = delete;
  ~OwnedTokenizer();
  const izh::Tokenizer* operator->() const { return tokenizer_; }

  std::vector<int32_t> encode(const std::string& text, bool bos = false,
                              bool special = false) const;
  std::string decode(const std::vector<int32_t>& ids, bool special = false) const;

 private:
  std::vector<uint8_t> section_;
  izh::Tokenizer* tokenizer_ = nullptr;
};

}  // namespace izh_test
