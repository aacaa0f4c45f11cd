// Temporary files, positioned writes and what to say when the disk is full.

#include "compiler/emit/OutputFile.h"
#include "compiler/support/Error.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace izhc::emit {

namespace fs = llvm::sys::fs;

llvm::Expected<OutputFile> OutputFile::create(llvm::StringRef name) {
  // A link stays one; the file that it names is replaced.
  llvm::SmallString<128> path(name), linked;
  if (fs::is_symlink_file(name) && !fs::real_path(name, linked))
    path = linked;
  auto file = fs::TempFile::create(llvm::Twine(path) + ".tmp%%%%%%", fs::all_read | fs::all_write);
  if (!file)
    return makeError("cannot create a file beside '{0}': {1}; choose another place with -o", name,
                     llvm::toString(file.takeError()));
  return OutputFile(path.str().str(), std::move(*file));
}

OutputFile::~OutputFile() {
  if (file)
    llvm::consumeError(file->discard());
}

llvm::Error OutputFile::failure(const char *what, int code) const {
  if (code == ENOSPC || code == EDQUOT)
    return makeError("no space left for '{0}': free some, or choose another disk with -o", path);
  return makeError("cannot {0} '{1}': {2}", what, path, strerror(code));
}

llvm::Error OutputFile::reserve(uint64_t bytes) {
  // Not every file system can reserve; those that can't fail at the write.
  if (fallocate(file->FD, 0, 0, static_cast<off_t>(bytes)) != 0 && errno != EOPNOTSUPP &&
      errno != ENOSYS && errno != EINVAL)
    return failure("make room for", errno);
  if (ftruncate(file->FD, static_cast<off_t>(bytes)) != 0)
    return failure("write", errno);
  return llvm::Error::success();
}

llvm::Error OutputFile::write(uint64_t offset, llvm::ArrayRef<uint8_t> bytes) {
  while (!bytes.empty()) {
    ssize_t written = pwrite(file->FD, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return failure("write", written == 0 ? EIO : errno);
    bytes = bytes.drop_front(written);
    offset += written;
  }
  return llvm::Error::success();
}

llvm::Error OutputFile::keep() {
  // `keep` consumes the temporary file whether or not it succeeds.
  llvm::Error error = file->keep(path);
  file.reset();
  if (!error)
    return error;
  return makeError("cannot give '{0}' its name: {1}", path, llvm::toString(std::move(error)));
}

} // namespace izhc::emit
