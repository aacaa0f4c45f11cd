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

// True if all of it is UTF-8.
bool utf8_is_valid(const uint8_t* bytes, size_t count);

// Appends the text to `out` with U+FFFD in place of each byte that belongs to
// no character. False if there is no memory.
[[nodiscard]] bool utf8_repair(const uint8_t* bytes, size_t count, Array<uint8_t>* out);

}  // namespace izh
