// Messages and the progress bar.

#include "tools/izhc/Report.h"
#include "compiler/support/Error.h"
#include "runtime/platform/process.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <unistd.h>

namespace izhc::tool {

// Nothing here may need memory.
void giveUp(const char *what) {
  llvm::sys::RunInterruptHandlers();
  const char *parts[] = {"izhc: ", what,
                         ": free memory, raise the limits of this process (ulimit -a), or use "
                         "fewer threads with -j\n"};
  for (const char *part : parts)
    (void)!write(STDERR_FILENO, part, strlen(part));
  _exit(kFailed);
}

static void outOfMemory() { giveUp("out of memory"); }

void prepare() {
  std::set_new_handler(outOfMemory);
  llvm::install_bad_alloc_error_handler([](void *, const char *, bool) { outOfMemory(); });
  // What LLVM can't go on without, mostly a thread. Its own errors are asserts.
  llvm::install_fatal_error_handler([](void *, const char *what, bool) { giveUp(what); });
  std::set_terminate([] { giveUp("the system refused a thread"); });
  // LLVM takes its signals once, when the first handler is added, and removes
  // temporary files; what comes after replaces its bus error.
  llvm::sys::AddSignalHandler([](void *) {}, nullptr);
  izh::process_prepare("izhc", llvm::sys::RunInterruptHandlers);
}

int finish(int status) {
  llvm::raw_fd_ostream &out = llvm::outs();
  out.flush();
  // A reader that left early (`| head`) has what it wanted.
  bool left = out.error() == std::errc::broken_pipe;
  if (out.has_error() && !left && status == kDone) {
    std::string reason = out.error().message();
    llvm::errs() << "izhc: cannot write to standard output: " << reason << "\n";
    status = kFailed;
  }
  // LLVM aborts over errors that are left. There is no place to tell those of
  // standard error.
  out.clear_error();
  static_cast<llvm::raw_fd_ostream &>(llvm::errs()).clear_error();
  return status;
}

int report(llvm::Error error, int status) {
  llvm::handleAllErrors(std::move(error), [](const llvm::ErrorInfoBase &info) {
    llvm::errs() << "izhc: " << info.message() << "\n";
  });
  return status;
}

// Whether `output`, which exists, lies in the folder `input` and isn't of a kind
// that izhc writes.
static bool isPartOf(llvm::StringRef input, llvm::StringRef output) {
  namespace path = llvm::sys::path;
  llvm::SmallString<128> folder(output), end;
  if (!llvm::sys::fs::is_directory(input) || llvm::sys::fs::make_absolute(folder))
    return false;
  end = path::extension(output);
  path::remove_filename(folder);
  return llvm::sys::fs::equivalent(input, folder) && end != ".izh" && end != ".gguf" &&
         end != ".svg";
}

llvm::Error checkOutput(llvm::ArrayRef<llvm::StringRef> inputs, llvm::StringRef output,
                        llvm::StringRef flag) {
  namespace fs = llvm::sys::fs;
  if (output == "-")
    return makeError("-o - would be standard output, but a file is needed: name one (./- is the "
                     "file of that name)");
  if (fs::is_directory(output))
    return makeError("{0} {1} is a folder, but the name of a file is needed", flag, output);
  if (!fs::exists(output))
    return llvm::Error::success();
  for (llvm::StringRef input : inputs)
    if (!input.empty() && (fs::equivalent(input, output) || isPartOf(input, output)))
      return makeError("{0} {1} is {2}: name another file with {0}", flag, output,
                       input == inputs[0] && fs::equivalent(input, output) ? "the model itself"
                                                                           : "one of the inputs");
  // The finished file takes the name, which would do away with a device.
  if (!fs::is_regular_file(output))
    return makeError("{0} {1} is a device or a pipe, but a file is needed", flag, output);
  return llvm::Error::success();
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
