// How izhc speaks to people.

#pragma once

#include "tools/izhc/Commands.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <string>

namespace izhc::tool {

// Prints the sentence of `error` and returns `status`.
int report(llvm::Error error, int status = kFailed);

// Fails with a sentence where `output`, which `flag` names, can't become a new
// file made from `inputs`: files, folders of models, or empty names. What lies in
// a folder of a model and isn't made by izhc is an input too.
llvm::Error checkOutput(llvm::ArrayRef<llvm::StringRef> inputs, llvm::StringRef output,
                        llvm::StringRef flag = "-o");

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
