// All tokens that a text starts with: one walk down a trie.

#pragma once

#include "runtime/schema/byte_trie.h"
#include "runtime/text/tokenizer_view.h"

namespace izh {

// Calls `take` (void(size_t bytes, int32_t value)) for each string of `trie` that
// `text` starts with, the shortest first. Returns how many bytes were looked at.
template <typename Take>
size_t walk_trie(Span<const uint64_t> trie, const uint8_t* text, size_t count, const Take& take) {
  const size_t most = count < schema::kMaxPieceBytes ? count : schema::kMaxPieceBytes;
  schema::TrieUnit unit = trie[0];
  for (size_t i = 0; i < most; ++i) {
    unit = schema::child_of(trie.data, unit, text[i]);
    if (unit == 0) return i + 1;
    if (schema::value_of(unit) >= 0) take(i + 1, schema::value_of(unit));
  }
  return most;
}

// The same for the tokens of the kinds that don't merge, which end where
// characters do.
template <typename Take>
size_t find_pieces(const TokenizerView& view, const uint8_t* text, size_t count, const Take& take) {
  return walk_trie(view.pieces, text, count, [&](size_t bytes, int32_t id) {
    if (bytes == count || (text[bytes] & 0xc0) != 0x80) take(bytes, id);
  });
}

}  // namespace izh
