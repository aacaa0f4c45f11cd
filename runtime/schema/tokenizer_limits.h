// How much of a kind a tokenizer section may hold. The compiler refuses what
// goes beyond, and the runtime too.

#pragma once

#include <cstddef>

namespace izh::schema {

constexpr size_t kMaxPatterns = 16;
constexpr size_t kMaxPatternBytes = size_t{1} << 14;
constexpr size_t kMaxNormalSteps = 16;

}  // namespace izh::schema
