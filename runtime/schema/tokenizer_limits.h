// How much of a kind a tokenizer section may hold. The compiler refuses what
// goes beyond, and the runtime too.

#pragma once

#include <cstddef>

namespace izh::schema {

constexpr size_t kMaxPatterns = 16;
constexpr size_t kMaxPatternBytes = size_t{1} << 14;
constexpr size_t kMaxNormalSteps = 16;
// Of a map of characters: bytes of what is replaced, and of what replaces it.
constexpr size_t kMaxMapDepth = 256;
constexpr size_t kMaxMapText = 1024;
// What begins a word among pieces, see byte_marks of tokenizer.fbs: in no UTF-8.
constexpr char kWordMark = '\xff';

}  // namespace izh::schema
