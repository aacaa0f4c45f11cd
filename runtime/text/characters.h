// What Unicode says of a character, as far as tokenizers,
// templates and line editing ask.

#pragma once

#include <cstdint>

namespace izh {

uint32_t lower_case(uint32_t code_point);
// Of category Mn, or of any mark if `all`.
bool is_mark(uint32_t code_point, bool all);
// Whether a grapheme ends between two characters. `state` starts as 0.
bool grapheme_ends(uint32_t before, uint32_t behind, int32_t* state);
// Of a category L, of Nd, and of any N.
bool is_letter(uint32_t code_point);
bool is_decimal(uint32_t code_point);
bool is_number(uint32_t code_point);
// A letter, mark, decimal digit or connector, or one of what Unicode adds to
// these (Alphabetic, Join_Control): \w of UTS 18.
bool is_word(uint32_t code_point);
// Columns that a terminal shows it in: 0 to 2.
uint32_t display_width(uint32_t code_point);
// Neither unassigned, nor of a category Z or C.
bool is_visible(uint32_t code_point);
// A control, format, private-use or surrogate character.
bool is_no_text(uint32_t code_point);

}  // namespace izh
