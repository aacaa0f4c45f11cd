// A pattern's syntax, as far as tables can be made of it: sets of characters,
// groups, alternatives, quantifiers (possessive ones of sets) and looking one
// character ahead.

#pragma once

#include "llvm/ADT/StringRef.h"
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace izhc {

struct PatternNode {
  enum Kind {
    Sequence,
    Choice, // the first alternative that leads to a match
    Set,    // one character of `set`
    Repeat, // `parts[0]`, `least` to `most` times
    Ahead,  // one of `set` follows
    NotAhead,
    End, // of the text, or before a line feed that ends it
  };
  static constexpr unsigned kEndless = ~0u;

  Kind kind = Sequence;
  std::vector<PatternNode> parts;
  // Index in the list of sets.
  unsigned set = 0;
  unsigned least = 0, most = 0;
  bool lazy = false;

  bool canBeEmpty() const;
};

// std::nullopt if the pattern is wrong or has something else in it. Sets are
// added to those in `sets`, so that several patterns can share them.
std::optional<PatternNode> parsePattern(llvm::StringRef pattern, std::vector<std::string> &sets);

} // namespace izhc
