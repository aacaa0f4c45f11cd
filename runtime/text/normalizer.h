// What a tokenizer does to a text before it cuts it into words: normal forms of
// Unicode, maps of characters, case, spaces.

#pragma once

#include "runtime/base/array.h"
#include "runtime/text/tokenizer_view.h"

namespace izh {

// Steps `begin` to `end` of a view.
struct StepRange {
  size_t begin;
  size_t end;
};

// Replaces `text`, which is UTF-8 and remains so, by what these steps of `view`
// make of it. IZH_LIMIT if it becomes longer than `limit` bytes.
[[nodiscard]] izh_status normalize(const TokenizerView& view, StepRange steps, size_t limit,
                                   Array<uint8_t>* text, izh_error* error);

// Appends what a precompiled map of SentencePiece makes of `text`. False if there
// is no memory, or once there are more than `limit` bytes.
[[nodiscard]] bool map_characters(const TokenizerView& view, Span<const uint8_t> map, size_t limit,
                                  const Array<uint8_t>& text, Array<uint8_t>* out);

// The same as kCharsmapGraphemes wants it.
[[nodiscard]] bool map_graphemes(Span<const uint8_t> map, size_t limit, const Array<uint8_t>& text,
                                 Array<uint8_t>* out);

// Appends `text` in a normal form of Unicode. False if there is no memory.
[[nodiscard]] bool put_normal_form(NormalStepKind form, const Array<uint8_t>& text,
                                   Array<uint8_t>* out);

// Unicode's White_Space.
bool is_white_space(uint32_t code_point);

}  // namespace izh
