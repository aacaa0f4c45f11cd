// Characters of UTF-8 strings that are known to be valid, and what templates
// ask about them.

#pragma once

#include "runtime/text/jinja/value.h"

namespace izh::jinja {

// Bytes of the character that starts with this byte.
inline uint32_t character_bytes(char first) {
  const auto byte = static_cast<uint8_t>(first);
  return byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}
uint32_t character_at(Text text, uint32_t at);
// Bytes of the last character.
uint32_t last_character_bytes(Text text);
uint32_t count_characters(Text text);
// The byte where character `index` starts; the end if there are fewer.
uint32_t character_offset(Text text, uint32_t index);

bool is_space(uint32_t c);
// Of ASCII.
bool is_digit(uint32_t c);
// What Python's isupper() and islower() say.
bool is_all_of_case(Text text, bool upper);
// Whether Python's repr() shows it as it is.
bool is_printable(uint32_t c);

// Without white space (or the characters of `set`, if that is not NULL) at the
// sides asked for.
Text strip(Text text, const Text* set, bool left, bool right);

}  // namespace izh::jinja
