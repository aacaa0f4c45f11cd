// How izhc speaks to people.

#pragma once

#include "tools/izhc/Commands.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <string>

namespace izhc::tool {

// Prints the sentence of `error` and returns `status`.
int report(llvm::Error error, int status = kFailed);

// Fails with a sentence where `output` can't become a new file made from `input`.
llvm::Error checkOutput(llvm::StringRef input, llvm::StringRef output);

// "12.3 MB", in powers of ten.
std::string megabytes(uint64_t bytes);

// A bar on standard error that is redrawn in place; silent unless that is a
// terminal.
class ProgressBar {
public:
  ProgressBar();
  ~ProgressBar();
  void show(llvm::StringRef what, double share);

private:
  bool terminal;
  int lastPercent = -1;
  std::string lastWhat;
};

} // namespace izhc::tool
