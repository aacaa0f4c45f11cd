// The tokenizer section after verification: plain pointers into the mapped file
// and the look-ups in its tables. All offsets and ids have been checked.

#pragma once

#include <cstring>

#include "runtime/base/span.h"
#include "runtime/include/izh/izh.h"
#include "runtime/schema/tokenizer_limits.h"
#include "runtime/text/scanner.h"

namespace izh {

enum class TokenizerKind : uint8_t { kByteBpe, kScoreBpe, kUnigram, kWordPiece };
// Numbers of schema::TokenType.
enum class TokenType : uint8_t {
  kUndefined,
  kNormal,
  kUnknown,
  kControl,
  kUserDefined,
  kUnused,
  kByte,
};

struct MergeRule {
  uint32_t left;
  uint32_t right;
  uint32_t result;
};

// Numbers of schema::NormalStepKind.
enum class NormalStepKind : uint8_t {
  kCompose,
  kDecompose,
  kCompatCompose,
  kCompatDecompose,
  kCharsmap,
  kLowercase,
  kStripMarks,
  kStripNonspacing,
  kReplace,
  kReplaceSpaces,
  kStripLeft,
  kStripRight,
  kClean,
  kSpaceIdeographs,
  kBlanks,
  kCharsmapGraphemes,
  kPrepend,
};

struct NormalStep {
  NormalStepKind kind;
  Span<const uint8_t> from;
  Span<const uint8_t> to;
};

// Tokens that are looked for in a text.
struct SpecialTokens {
  Span<const uint32_t> ids;
  Span<const uint64_t> trie;  // of indices in `ids`, see byte_trie.h
  // Empty, or of each: whether it takes the blanks beside it, and whether it must
  // be a whole word.
  Span<const uint8_t> strips;
  static constexpr uint8_t kStripsLeft = 1, kStripsRight = 2, kWholeWord = 4;
};

struct TokenizerView {
  TokenizerKind kind = {};
  uint32_t tokens = 0;
  Span<const uint32_t> text_offsets;  // tokens + 1, ascending
  Span<const uint8_t> text;
  Span<const uint8_t> types;
  Span<const float> scores;          // kScoreBpe, kUnigram: of each token
  Span<const uint32_t> token_slots;  // see tokenizer_hash.h
  Span<const MergeRule> merges;
  Span<const uint32_t> merge_slots;
  Span<const int32_t> byte_tokens;  // 256
  SpecialTokens specials;           // ascending by bytes; valid UTF-8, none empty
  // Of what the first steps make of the text between those.
  SpecialTokens changed_specials;
  size_t steps_before_specials = 0;  // at most step_count
  Span<const uint32_t> ends;         // ascending
  Span<const uint8_t> joins;         // empty, or kJoinBytes
  static constexpr size_t kJoinBytes = (65536 + 256) / 8;
  Span<const uint8_t> byte_cuts;  // empty, or kCutBytes
  static constexpr size_t kCutBytes = 65536 / 8;
  CharacterClasses classes;
  NormalStep steps[schema::kMaxNormalSteps] = {};
  size_t step_count = 0;
  Span<const double> precise_scores;  // empty, or as `scores`
  Span<const uint64_t> pieces;        // kUnigram, kWordPiece: see byte_trie.h
  double unknown_score = 0;
  uint32_t longest_word = 0;
  bool byte_marks = false;
  bool user_defined_inside = false;
  bool leftmost_specials = false;
  bool whole_words = false;
  bool words_at_spaces = false;
  bool add_bos = false;  // then bos is not -1; so for eos
  bool add_eos = false;
  bool add_space_prefix = false;
  bool space_prefix_once = false;
  bool space_prefix_skips = false;
  bool prefix_in_steps = false;
  bool split_spaces = false;
  bool fuse_unknown = false;
  int32_t bos = -1;
  int32_t eos = -1;
  int32_t eot = -1;
  int32_t unk = -1;
  int32_t pad = -1;

  Span<const uint8_t> token_text(uint32_t id) const {
    return {text.data + text_offsets[id], text_offsets[id + 1] - text_offsets[id]};
  }
  double score(uint32_t id) const {
    return precise_scores.empty() ? static_cast<double>(scores[id]) : precise_scores[id];
  }
  TokenType token_type(uint32_t id) const { return static_cast<TokenType>(types[id]); }

  // Whether a token may have byte `b` right behind byte `a`, or U+2581 behind `a`.
  bool joins_bytes(uint8_t a, uint8_t b) const { return joins[a * 32 + b / 8] >> b % 8 & 1; }
  // Whether words are cut between the two.
  bool cuts_bytes(uint8_t a, uint8_t b) const { return byte_cuts[a * 32 + b / 8] >> b % 8 & 1; }
  bool joins_space(uint8_t a) const { return joins[8192 + a / 8] >> a % 8 & 1; }

  // The token with these bytes, or -1.
  int32_t find_token(const uint8_t* bytes, size_t count) const;
  // Index of the merge of two tokens, or -1.
  int32_t find_merge(uint32_t left, uint32_t right) const;
};

// One split pattern, as in the file.
struct PatternText {
  const char* text;
  size_t bytes;
};

struct PatternList {
  PatternText items[schema::kMaxPatterns];
  // Of each pattern, where the compiler could make one.
  Scanner scanners[schema::kMaxPatterns];
  size_t count = 0;
};

// Verifies `bytes` of a section, which must be aligned to 8 and outlive the view.
// Scanners refer to `view`.
[[nodiscard]] izh_status view_tokenizer(const void* section, size_t bytes, TokenizerView* view,
                                        PatternList* patterns, izh_error* error);

}  // namespace izh
