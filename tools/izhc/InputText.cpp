// Reads piece by piece: the length of a pipe is known at its end only.

#include "tools/izhc/InputText.h"

#include "compiler/support/Error.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace izhc::tool {
namespace {

constexpr size_t kMostBytes = size_t(256) << 20;

// Closes what was opened here.
struct Input {
  int file;
  bool isOwn;
  ~Input() {
    if (isOwn && file >= 0)
      ::close(file);
  }
};

llvm::Error cannotRead(llvm::StringRef path) {
  return makeError("cannot read '{0}': {1}", path, std::strerror(errno));
}

// A terminal ends when its user says so; /dev/null at once.
bool mayBeEndless(int file) {
  struct stat info;
  return ::fstat(file, &info) == 0 && (S_ISCHR(info.st_mode) || S_ISBLK(info.st_mode)) &&
         !::isatty(file);
}

} // namespace

llvm::Expected<std::string> readText(llvm::StringRef path) {
  bool isStandard = path == "-";
  Input input = {isStandard ? STDIN_FILENO : ::open(path.str().c_str(), O_RDONLY | O_CLOEXEC),
                 !isStandard};
  if (input.file < 0)
    return cannotRead(path);
  bool isDevice = mayBeEndless(input.file);
  std::string text;
  char piece[1 << 16];
  while (true) {
    ssize_t count = ::read(input.file, piece, sizeof(piece));
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return cannotRead(path);
    if (count == 0)
      return text;
    if (isDevice)
      return makeError("'{0}' is a device, but a file, a pipe or - for input is needed", path);
    text.append(piece, size_t(count));
    if (text.size() > kMostBytes)
      return makeError("'{0}' has more than {1} MiB, which is more than can be read at once", path,
                       kMostBytes >> 20);
  }
}

} // namespace izhc::tool
