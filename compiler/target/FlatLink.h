// Links one object file to a flat, position-independent blob.

#pragma once

#include "compiler/target/Target.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

namespace izhc {

// Code and read-only data of `object`, to be placed at any multiple of 4096.
// An error if it needs relocations at load time, writable data or symbols from
// outside, or if a function of `order` is not in it.
llvm::Expected<CodeBlob> linkFlat(llvm::StringRef object, llvm::ArrayRef<std::string> order);

} // namespace izhc
