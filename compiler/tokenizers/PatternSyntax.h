// Patterns of tokenizer.json are Oniguruma's, which writes some things as PCRE2
// does and means others by them.

#pragma once

#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>

namespace izhc {

// The same pattern for PCRE2; std::nullopt where there is something that it has
// no words for, or that isn't known here.
std::optional<std::string> fromOniguruma(llvm::StringRef pattern);

} // namespace izhc
