// Which characters a pattern of one character matches, and the classes that
// several such sets cut all characters into.

#pragma once

#include "llvm/ADT/ArrayRef.h"
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace izhc {

// Code points first..second - 1, ascending, none touching the next.
using CharacterSet = std::vector<std::pair<uint32_t, uint32_t>>;

// Asks PCRE2; std::nullopt if the pattern is wrong.
std::optional<CharacterSet> charactersOf(const std::string &pattern);

struct CharacterClasses {
  // The class of code point c: classes[pages[c / kPage] * kPage + c % kPage].
  static constexpr uint32_t kPage = 128;
  std::vector<uint16_t> pages;
  std::vector<uint8_t> classes;
  unsigned count = 0;
  // Bit s of members[c]: characters of class c are in set s.
  std::vector<uint64_t> members;

  unsigned of(uint32_t codePoint) const {
    return classes[pages[codePoint / kPage] * kPage + codePoint % kPage];
  }
};

// Characters of one class are in the same ones of at most 64 sets. std::nullopt
// if there are more than `most` classes.
std::optional<CharacterClasses> classify(llvm::ArrayRef<CharacterSet> sets, unsigned most);

} // namespace izhc
