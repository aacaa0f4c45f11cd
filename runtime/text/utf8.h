// UTF-8: telling characters from bytes that are none (Unicode 15, table 3-7).

#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/array.h"

namespace izh {

enum class Utf8 : uint8_t {
  kValid,
  kInvalid,
  kIncomplete,  // the bytes end inside of a character that may still be valid
};

struct Utf8Step {
  Utf8 state;
  // Bytes of the character; if invalid, of the longest start of a character.
  uint8_t length;
};

// Looks at the start of `count` bytes, at least one.
Utf8Step utf8_step(const uint8_t* bytes, size_t count);

// The character at the start of UTF-8, and how many bytes it has.
inline uint32_t utf8_decode(const uint8_t* text, uint32_t* length) {
  const uint32_t lead = text[0];
  if (lead < 0x80) return *length = 1, lead;
  if (lead < 0xe0) return *length = 2, (lead & 0x1f) << 6 | (text[1] & 0x3fu);
  const uint32_t second = text[1] & 0x3fu, third = text[2] & 0x3fu;
  if (lead < 0xf0) return *length = 3, (lead & 0xf) << 12 | second << 6 | third;
  return *length = 4, (lead & 7) << 18 | second << 12 | third << 6 | (text[3] & 0x3fu);
}

// Writes a character of Unicode; how many bytes it has.
inline uint32_t utf8_encode(uint32_t c, uint8_t out[4]) {
  const auto tail = [c](unsigned shift) { return static_cast<uint8_t>(0x80 | (c >> shift & 63)); };
  if (c < 0x80) return out[0] = static_cast<uint8_t>(c), 1;
  if (c < 0x800) return out[0] = static_cast<uint8_t>(0xc0 | c >> 6), out[1] = tail(0), 2;
  if (c < 0x10000) {
    return out[0] = static_cast<uint8_t>(0xe0 | c >> 12), out[1] = tail(6), out[2] = tail(0), 3;
  }
  out[0] = static_cast<uint8_t>(0xf0 | c >> 18);
  return out[1] = tail(12), out[2] = tail(6), out[3] = tail(0), 4;
}

// True if all of it is UTF-8.
bool utf8_is_valid(const uint8_t* bytes, size_t count);

// Appends the text to `out` with U+FFFD in place of each byte that belongs to
// no character. False if there is no memory.
[[nodiscard]] bool utf8_repair(const uint8_t* bytes, size_t count, Array<uint8_t>* out);

}  // namespace izh
