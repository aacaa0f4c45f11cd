// Messages and the progress bar.

#include "tools/izhc/Report.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdio>
#include <unistd.h>

namespace izhc::tool {

int report(llvm::Error error, int status) {
  llvm::handleAllErrors(std::move(error), [](const llvm::ErrorInfoBase &info) {
    llvm::errs() << "izhc: " << info.message() << "\n";
  });
  return status;
}

std::string megabytes(uint64_t bytes) {
  char text[32];
  snprintf(text, sizeof(text), "%.2f MB", bytes / 1e6);
  return text;
}

ProgressBar::ProgressBar() : terminal(isatty(STDERR_FILENO)) {}

ProgressBar::~ProgressBar() {
  if (terminal && lastPercent >= 0)
    fprintf(stderr, "\r\033[K");
}

void ProgressBar::show(llvm::StringRef what, double share) {
  int percent = static_cast<int>(share * 100);
  if (!terminal || (percent == lastPercent && what == lastWhat))
    return;
  lastPercent = percent;
  lastWhat = what.str();
  constexpr int kWidth = 30;
  int full = percent * kWidth / 100;
  fprintf(stderr, "\r[%.*s%.*s] %3d %% %s\033[K", full, "##############################",
          kWidth - full, "..............................", percent, lastWhat.c_str());
}

} // namespace izhc::tool
