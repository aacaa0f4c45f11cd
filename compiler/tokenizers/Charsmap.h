// SentencePiece's precompiled maps of characters: whether the runtime can use
// one (runtime/text/charsmap.cpp says how they are made up).

#pragma once

#include "llvm/ADT/StringRef.h"
#include <string>

namespace izhc {

// What is wrong with a map, as the end of a sentence; "" if nothing is.
std::string charsmapProblem(llvm::StringRef map);

} // namespace izhc
