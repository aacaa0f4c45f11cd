// From patterns to tables that find the same matches as PCRE2, several times as
// fast and in time that grows with the match only (scanners of tokenizer.fbs).

#pragma once

#include "compiler/tokenizers/CharacterSets.h"

namespace izhc {

struct PatternScanners {
  CharacterClasses classes;
  // Of each pattern: transitions[state * symbols() + symbol], where states
  // start at 1 and symbols are classes, then a line feed that ends the text,
  // then its end. Twice the next state (0: none), plus one where a match ends
  // before the symbol. Empty: the pattern can only be used through PCRE2.
  std::vector<std::vector<uint16_t>> tables;

  unsigned symbols() const { return classes.count + 2; }
  // Whether a match begins at every place of every text. False for patterns of
  // which it isn't plain: where one character may be no match by itself.
  bool matchesEverything(size_t pattern) const;
};

PatternScanners buildScanners(llvm::ArrayRef<std::string> patterns);

} // namespace izhc
