// White space as Python has it; the rest asks Unicode's tables.

#include "runtime/text/jinja/characters.h"

#include "runtime/text/characters.h"
#include "runtime/text/letter_case.h"

namespace izh::jinja {

uint32_t character_at(Text text, uint32_t at) {
  const auto* s = reinterpret_cast<const uint8_t*>(text.data) + at;
  switch (character_bytes(text.data[at])) {
    case 1:
      return s[0];
    case 2:
      return (s[0] & 0x1fu) << 6 | (s[1] & 0x3fu);
    case 3:
      return (s[0] & 0x0fu) << 12 | (s[1] & 0x3fu) << 6 | (s[2] & 0x3fu);
    default:
      return (s[0] & 0x07u) << 18 | (s[1] & 0x3fu) << 12 | (s[2] & 0x3fu) << 6 | (s[3] & 0x3fu);
  }
}

uint32_t last_character_bytes(Text text) {
  uint32_t bytes = 1;
  while (bytes < text.size && (text.data[text.size - bytes] & 0xc0) == 0x80) ++bytes;
  return bytes;
}

uint32_t count_characters(Text text) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < text.size; ++i) count += (text.data[i] & 0xc0) != 0x80;
  return count;
}

uint32_t character_offset(Text text, uint32_t index) {
  uint32_t at = 0;
  while (at < text.size && index-- > 0) at += character_bytes(text.data[at]);
  return at;
}

bool is_space(uint32_t c) {
  return (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f ||
         c == 0x3000;
}

bool is_digit(uint32_t c) { return c >= '0' && c <= '9'; }

bool is_printable(uint32_t c) { return c == ' ' || is_visible(c); }

bool is_all_of_case(Text text, bool upper) {
  bool any = false;
  for (uint32_t at = 0; at < text.size; at += character_bytes(text.data[at])) {
    const uint32_t c = character_at(text, at);
    if ((upper ? is_lower_case(c) : is_upper_case(c)) || is_title_case(c)) return false;
    any = any || (upper ? is_upper_case(c) : is_lower_case(c));
  }
  return any;
}

static bool in_set(uint32_t c, const Text* set) {
  if (!set) return is_space(c);
  for (uint32_t at = 0; at < set->size; at += character_bytes(set->data[at])) {
    if (character_at(*set, at) == c) return true;
  }
  return false;
}

Text strip(Text text, const Text* set, bool left, bool right) {
  while (left && text.size != 0 && in_set(character_at(text, 0), set)) {
    text = text.from(character_bytes(text.data[0]));
  }
  while (right && text.size != 0) {
    const uint32_t bytes = last_character_bytes(text);
    if (!in_set(character_at(text, text.size - bytes), set)) break;
    text.size -= bytes;
  }
  return text;
}

}  // namespace izh::jinja
