// Encoding text without special tokens, one function a kind of tokenizer.

#pragma once

#include "runtime/text/merge.h"
#include "runtime/text/splitter.h"
#include "runtime/text/tokenizer_view.h"
#include "runtime/text/word_cache.h"

namespace izh {

// Memory that encoding reuses from fragment to fragment.
struct EncodeScratch {
  Splitter::Scratch splitter;
  Array<uint32_t> words;
  Array<Symbol> symbols;
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

// Both append the ids of `text`; 0 < bytes < 2^30.

// `text` is UTF-8; a space is put before it if `prefix`.
[[nodiscard]] izh_status encode_byte_bpe(const TokenizerView& view, const Splitter& splitter,
                                         const uint8_t* text, uint32_t bytes, bool prefix,
                                         EncodeScratch* scratch, Array<int32_t>* ids,
                                         izh_error* error);

// `text` may be any bytes; a space is put before it if `prefix`.
[[nodiscard]] izh_status encode_score_bpe(const TokenizerView& view, const uint8_t* text,
                                          uint32_t bytes, bool prefix, EncodeScratch* scratch,
                                          Array<int32_t>* ids, izh_error* error);

}  // namespace izh
