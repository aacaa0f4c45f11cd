// Classes and case of characters, as ranges.

#include "runtime/text/jinja/characters.h"

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

bool is_upper(uint32_t c) { return to_lower(c) != c; }
bool is_lower(uint32_t c) { return to_upper(c) != c || c == 0xdf; }

bool is_letter(uint32_t c) {
  if (c < 0x80) return (c | 32) >= 'a' && (c | 32) <= 'z';
  if (c < 0x250)
    return c == 0xaa || c == 0xb5 || c == 0xba || (c >= 0xc0 && c != 0xd7 && c != 0xf7);
  // Scripts, without their marks, numbers and signs as far as ranges tell.
  return (c >= 0x370 && c < 0x2000) || (c >= 0x2c00 && c < 0x2e00) || (c >= 0x3041 && c < 0xa640) ||
         (c >= 0xac00 && c < 0xd7a4) || (c >= 0xf900 && c < 0xfb00) ||
         (c >= 0x20000 && c < 0x31350);
}

uint32_t to_upper(uint32_t c) {
  if (c < 0x80) return c >= 'a' && c <= 'z' ? c - 32 : c;
  if (c == 0xb5) return 0x39c;
  if (c >= 0xe0 && c <= 0xfe && c != 0xf7) return c - 32;
  if (c == 0xff) return 0x178;
  const bool odd_lower = (c >= 0x100 && c <= 0x137) || (c >= 0x14a && c <= 0x177) ||
                         (c >= 0x460 && c <= 0x481) || (c >= 0x48a && c <= 0x4bf) ||
                         (c >= 0x4d0 && c <= 0x52f) || (c >= 0x1e00 && c <= 0x1e95) ||
                         (c >= 0x1ea0 && c <= 0x1eff);
  if (odd_lower && c != 0x131) return c & ~1u;
  if (c == 0x131) return 'I';
  if ((c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17e)) return (c & 1) == 0 ? c - 1 : c;
  if (c >= 0x3b1 && c <= 0x3cb) return c == 0x3c2 ? 0x3a3 : c - 32;
  if (c >= 0x3ad && c <= 0x3af) return c - 37;
  if (c == 0x3ac) return 0x386;
  if (c >= 0x430 && c <= 0x44f) return c - 32;
  if (c >= 0x450 && c <= 0x45f) return c - 80;
  return c;
}

uint32_t to_lower(uint32_t c) {
  if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + 32 : c;
  if (c >= 0xc0 && c <= 0xde && c != 0xd7) return c + 32;
  if (c == 0x178) return 0xff;
  const bool even_upper = (c >= 0x100 && c <= 0x137) || (c >= 0x14a && c <= 0x177) ||
                          (c >= 0x460 && c <= 0x481) || (c >= 0x48a && c <= 0x4bf) ||
                          (c >= 0x4d0 && c <= 0x52f) || (c >= 0x1e00 && c <= 0x1e95) ||
                          (c >= 0x1ea0 && c <= 0x1eff);
  if (even_upper && c != 0x130 && c != 0x131) return c | 1u;
  if ((c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17e)) return (c & 1) == 1 ? c + 1 : c;
  if (c >= 0x391 && c <= 0x3ab && c != 0x3a2) return c + 32;
  if (c >= 0x388 && c <= 0x38a) return c + 37;
  if (c == 0x386) return 0x3ac;
  if (c >= 0x410 && c <= 0x42f) return c + 32;
  if (c >= 0x400 && c <= 0x40f) return c + 80;
  return c;
}

bool is_printable(uint32_t c) {
  if (c == ' ') return true;
  const bool control = c < 0x20 || (c >= 0x7f && c <= 0xa0) || c == 0xad || c == 0xfeff;
  const bool format = (c >= 0x200b && c <= 0x200f) || (c >= 0x202a && c <= 0x202e) ||
                      (c >= 0x2060 && c <= 0x206f) || (c >= 0xfff0 && c <= 0xfffb) ||
                      (c >= 0xe000 && c <= 0xf8ff) || (c >= 0xe0000 && c <= 0xe0fff) ||
                      c >= 0xf0000 || (c & 0xfffe) == 0xfffe;
  return !control && !format && !is_space(c);
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
