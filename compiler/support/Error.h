// Errors of compiler code that has no MLIR location: llvm::Error with one
// sentence that names the file, tensor or flag, what was found, what was
// expected and what to do.

#pragma once

#include "llvm/Support/Error.h"
#include "llvm/Support/FormatVariadic.h"
#include <string>
#include <utility>

namespace izhc {

// An error with a message in the syntax of llvm::formatv ("{0} has {1} rows").
// Text that comes from a file goes through quote().
template <typename... Ts> llvm::Error makeError(const char *format, Ts &&...values) {
  return llvm::make_error<llvm::StringError>(
      llvm::formatv(format, std::forward<Ts>(values)...).str(), llvm::inconvertibleErrorCode());
}

// `text` between single quotes, with control and non-ASCII bytes as \xNN and
// cut to about `limit` bytes: safe to print whatever the file holds.
std::string quote(llvm::StringRef text, size_t limit = 80);

} // namespace izhc
