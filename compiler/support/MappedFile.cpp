// The mapping through POSIX calls: llvm::MemoryBuffer has no way to give pages
// back.

#include "compiler/support/MappedFile.h"

#include "compiler/support/Error.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace izhc;

static llvm::Error cannotRead(llvm::StringRef path, int code) {
  return makeError("cannot read {0}: {1}", path, std::strerror(code));
}

llvm::Expected<std::unique_ptr<MappedFile>> MappedFile::open(llvm::StringRef path) {
  std::string name = path.str();
  int file;
  // A named pipe must not block the open; it is refused below.
  do
    file = ::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  while (file < 0 && errno == EINTR);
  if (file < 0)
    return cannotRead(path, errno);

  struct stat info;
  if (::fstat(file, &info) != 0) {
    int code = errno;
    ::close(file);
    return cannotRead(path, code);
  }
  if (!S_ISREG(info.st_mode)) {
    ::close(file);
    return makeError("cannot read {0}: it is {1}, but a file is needed", path,
                     S_ISDIR(info.st_mode) ? "a folder" : "no regular file");
  }

  size_t size = static_cast<size_t>(info.st_size);
  void *data = nullptr;
  // The system refuses empty mappings.
  if (size != 0) {
    data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (data == MAP_FAILED) {
      int code = errno;
      ::close(file);
      return cannotRead(path, code);
    }
  }
  ::close(file);
  return std::unique_ptr<MappedFile>(
      new MappedFile(std::move(name), static_cast<const uint8_t *>(data), size));
}

MappedFile::~MappedFile() {
  if (size != 0)
    ::munmap(const_cast<uint8_t *>(data), size);
}

// Gives `advice` on [offset, offset + count), rounded to whole pages inwards
// (so that neighbours keep theirs) or outwards.
static void advise(const uint8_t *data, uint64_t size, uint64_t offset, uint64_t count, int advice,
                   bool inwards) {
  if (offset >= size)
    return;
  uint64_t end = offset + std::min(count, size - offset);
  uint64_t page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  uint64_t begin = offset / page * page;
  if (inwards) {
    begin = (offset + page - 1) / page * page;
    // The file's last page has no neighbour.
    if (end != size)
      end = end / page * page;
  }
  if (begin < end)
    ::madvise(const_cast<uint8_t *>(data) + begin, end - begin, advice);
}

void MappedFile::release(uint64_t offset, uint64_t count) const {
  advise(data, size, offset, count, MADV_DONTNEED, /*inwards=*/true);
}

void MappedFile::willNeed(uint64_t offset, uint64_t count) const {
  advise(data, size, offset, count, MADV_WILLNEED, /*inwards=*/false);
}
