// What people give instead of a model, told before it is read.

#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace izhc::tool {

// Fails where `path` is an artifact, naming `instead` ("izh-rt render") for it,
// or one file of a model folder. Anything else is left to who reads it.
llvm::Error checkModelPath(llvm::StringRef path, llvm::StringRef instead);

} // namespace izhc::tool
