// Texts that people hand to izhc: files, pipes, standard input.

#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace izhc::tool {

// The whole of the file `path`, or of standard input for "-". Fails with a
// sentence where read_input does.
llvm::Expected<std::string> readText(llvm::StringRef path);

} // namespace izhc::tool
