// What Unicode says of a character, as far as tokenizers ask.

#pragma once

#include <cstdint>

namespace izh {

uint32_t lower_case(uint32_t code_point);
// Of category Mn, or of any mark if `all`.
bool is_mark(uint32_t code_point, bool all);
// Whether a grapheme ends between two characters. `state` starts as 0.
bool grapheme_ends(uint32_t before, uint32_t behind, int32_t* state);
// A control, format, private-use or surrogate character.
bool is_no_text(uint32_t code_point);

}  // namespace izh
