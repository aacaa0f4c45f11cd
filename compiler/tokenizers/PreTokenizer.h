// The table of pre-tokenizers: how byte-level BPE vocabularies split a text into
// words. Files name one; artifacts hold its patterns.

#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <string>
#include <vector>

namespace izhc {

struct PreTokenizer {
  // Patterns in order: each splits what the one before it left into matches
  // and the text between them.
  std::vector<const char *> patterns;
  // All spellings of the name.
  std::vector<const char *> names;
  // A word that is a token is not merged from its bytes.
  bool wholeWords = false;
  // Default of add_bos_token.
  bool addBos = false;
};

// nullptr if there is none of this name.
const PreTokenizer *findPreTokenizer(llvm::StringRef name);

llvm::ArrayRef<PreTokenizer> preTokenizers();

// The same pattern for PCRE2, whose \s holds characters that Unicode no longer
// counts as white space: \s and \S become explicit classes.
std::string toPcre2(llvm::StringRef pattern);

} // namespace izhc
