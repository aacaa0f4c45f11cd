// All tokens that a text starts with, for the kinds that don't merge.

#pragma once

#include "runtime/schema/tokenizer_hash.h"
#include "runtime/text/tokenizer_view.h"

namespace izh {

// Calls `take` (void(size_t bytes, int32_t id)) for each, the shortest first.
// Returns how many bytes were looked at.
template <typename Take>
size_t find_pieces(const TokenizerView& view, const uint8_t* text, size_t count, const Take& take) {
  uint64_t hash = 0;
  for (size_t i = 0; i < count; ++i) {
    hash = schema::extend_prefix(hash, text[i]);
    const uint64_t bit = schema::prefix_bit(hash, view.prefixes.size);
    if (!(view.prefixes[bit / 64] >> bit % 64 & 1)) return i + 1;
    // Tokens end where characters do.
    if (i + 1 < count && (text[i + 1] & 0xc0) == 0x80) continue;
    const int32_t id = view.find_token(text, i + 1);
    if (id >= 0) take(i + 1, id);
  }
  return count;
}

}  // namespace izh
