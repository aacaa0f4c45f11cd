// What the steps of a tokenizer make of a token's text, where that can be told
// without the tables of Unicode.

#pragma once

#include "compiler/tokenizers/TokenizerTables.h"
#include "llvm/ADT/ArrayRef.h"
#include <optional>

namespace izhc {

// Steps other than replacements of text need characters of ASCII (or U+2581).
// nullopt where there are others, or a map of characters.
std::optional<std::string> changedText(llvm::ArrayRef<TextStep> steps, std::string text);

} // namespace izhc
