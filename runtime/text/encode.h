// Encoding text without special tokens, one function a kind of tokenizer.

#pragma once

#include "runtime/text/merge.h"
#include "runtime/text/splitter.h"
#include "runtime/text/tokenizer_view.h"
#include "runtime/text/word_cache.h"

namespace izh {

// The best way to a place in a text: its score, where its last token begins, and
// that token, or -1 for an unknown character.
struct PathEnd {
  double score;
  uint32_t from;
  int32_t id;
  bool reached;
};

// What encoding keeps from fragment to fragment: memory, and ids of words, which hold
// for one setting of `control`.
struct EncodeScratch {
  // Whether control tokens that the vocabulary lists as pieces are used.
  bool control = false;
  Splitter::Scratch splitter;
  Array<uint32_t> words;
  Array<Symbol> symbols;
  Array<PathEnd> best;
  Array<uint8_t> text;
  Merger merger;
  WordCache cache;
};

// Appends the ids of the word begin..end of `text`, which `encode` (bool()) does
// where they are not known from before. False if there is no memory.
template <typename Encode>
[[nodiscard]] bool encode_cached(const uint8_t* text, uint32_t begin, uint32_t end,
                                 EncodeScratch* scratch, Array<int32_t>* ids,
                                 const Encode& encode) {
  WordCache::Entry* entry = scratch->cache.find(text + begin, end - begin);
  if (!entry) return encode();
  if (entry->length != 0) return ids->append(entry->ids, entry->count);
  const size_t before = ids->size();
  if (!encode()) return false;
  WordCache::store(entry, text + begin, end - begin, ids->data() + before, ids->size() - before);
  return true;
}

// What two tokens merge into by the list of merges; ids may be -1.
inline MergeResult find_ranked_merge(const TokenizerView& view, int32_t left, int32_t right) {
  if (left < 0 || right < 0) return {kNoMerge, -1};
  const int32_t rank = view.find_merge(static_cast<uint32_t>(left), static_cast<uint32_t>(right));
  if (rank < 0) return {kNoMerge, -1};
  return {static_cast<uint32_t>(rank), static_cast<int32_t>(view.merges[rank].result)};
}

// `out` becomes the text with U+2581 for spaces, and one before it if `prefix`.
// False if there is no memory.
[[nodiscard]] bool escape_spaces(const uint8_t* text, uint32_t bytes, bool prefix,
                                 Array<uint8_t>* out);
// End of the word at `begin` of such a text: the next place that tokens never
// reach across.
uint32_t word_end(const TokenizerView& view, const Array<uint8_t>& text, uint32_t begin);

// All append the ids of `text`; 0 < bytes < 2^30.

// `text` is UTF-8; a space is put before it if `prefix`.
[[nodiscard]] izh_status encode_byte_bpe(const TokenizerView& view, const Splitter& splitter,
                                         const uint8_t* text, uint32_t bytes, bool prefix,
                                         EncodeScratch* scratch, Array<int32_t>* ids,
                                         izh_error* error);

// `text` may be any bytes; a space is put before it if `prefix`.
[[nodiscard]] izh_status encode_score_bpe(const TokenizerView& view, const uint8_t* text,
                                          uint32_t bytes, bool prefix, EncodeScratch* scratch,
                                          Array<int32_t>* ids, izh_error* error);

// `text` is UTF-8; a space is put before it if `prefix`.
[[nodiscard]] izh_status encode_unigram(const TokenizerView& view, const uint8_t* text,
                                        uint32_t bytes, bool prefix, EncodeScratch* scratch,
                                        Array<int32_t>* ids, izh_error* error);

// `text` is UTF-8.
[[nodiscard]] izh_status encode_word_piece(const TokenizerView& view, const Splitter& splitter,
                                           const uint8_t* text, uint32_t bytes,
                                           EncodeScratch* scratch, Array<int32_t>* ids,
                                           izh_error* error);

}  // namespace izh
