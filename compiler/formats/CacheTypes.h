// Names of the types of key and value caches, as users say them.

#pragma once

#include "llvm/ADT/StringRef.h"
#include <optional>

namespace izhc {

// Bits of a value (16, 8 or 4) in a cache of the type `name`; nothing for an
// unknown one.
std::optional<int64_t> cacheTypeBits(llvm::StringRef name);
llvm::StringRef cacheTypeName(int64_t bits);
// All names, for sentences.
llvm::StringRef cacheTypeNames();

} // namespace izhc
