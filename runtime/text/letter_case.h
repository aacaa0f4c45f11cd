// Upper, lower and title case of characters, by the full mappings of Unicode:
// one character may become several.

#pragma once

#include <cstdint>

namespace izh {

enum class LetterCase : uint8_t { kLower, kUpper, kTitle, kFolded };

struct CaseMapping {
  // Characters, of which there are `count`.
  uint32_t points[4];
  uint32_t count;
};

// What `code_point` is in that case; itself if it has none. A capital sigma's
// lower case depends on its neighbours: here it is the one inside of words.
CaseMapping map_case(uint32_t code_point, LetterCase to);

// Unicode's properties Uppercase and Lowercase, category Lt, and any of them.
bool is_upper_case(uint32_t code_point);
bool is_lower_case(uint32_t code_point);
bool is_title_case(uint32_t code_point);
bool is_cased(uint32_t code_point);
// What stands in words without being of a case: marks, apostrophes, ...
bool is_case_ignorable(uint32_t code_point);

}  // namespace izh
