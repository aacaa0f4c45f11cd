// File and code mappings through mmap.

#include "runtime/platform/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "runtime/base/status.h"

namespace izh {

izh_status file_map(const char* path, MappedFile* out, izh_error* error) {
  // Without O_NONBLOCK a named pipe would wait for its writer.
  const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    return fail(error, IZH_IO, "cannot open %s: %s", path, strerror(errno));
  }
  struct stat facts;
  izh_status status = IZH_OK;
  void* data = MAP_FAILED;
  if (fstat(descriptor, &facts) != 0) {
    status = fail(error, IZH_IO, "cannot read the size of %s: %s", path, strerror(errno));
  } else if (!S_ISREG(facts.st_mode)) {
    status = fail(error, IZH_IO, "%s is not a regular file, but an artifact has to be one", path);
  } else if (facts.st_size <= 0) {
    status = fail(error, IZH_BAD_ARTIFACT, "%s is empty", path);
  } else {
    data = mmap(nullptr, static_cast<size_t>(facts.st_size), PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (data == MAP_FAILED) {
      status = fail(error, IZH_IO, "cannot map %s: %s", path, strerror(errno));
    }
  }
  if (status != IZH_OK) {
    close(descriptor);
    return status;
  }
  out->data = static_cast<const uint8_t*>(data);
  out->size = static_cast<uint64_t>(facts.st_size);
  out->descriptor = descriptor;
  return IZH_OK;
}

void file_unmap(MappedFile* file) {
  // Bytes that are not a file's belong to the caller.
  if (file->descriptor >= 0) {
    munmap(const_cast<uint8_t*>(file->data), file->size);
    close(file->descriptor);
  }
  *file = MappedFile();
}

void file_read_ahead(const MappedFile& file, uint64_t offset, uint64_t size) {
  if (file.descriptor < 0 || size == 0) return;
  const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t begin = offset & ~(page - 1);
  madvise(const_cast<uint8_t*>(file.data) + begin, size + (offset - begin), MADV_WILLNEED);
}

namespace {

// A mapping of the file needs no copy and shares pages between processes;
// it is refused on noexec mounts and by some policies.
void* map_executable(const MappedFile& file, uint64_t offset, uint64_t size) {
  if (file.descriptor < 0) return MAP_FAILED;
  return mmap(nullptr, size, PROT_READ | PROT_EXEC, MAP_PRIVATE, file.descriptor,
              static_cast<off_t>(offset));
}

void* copy_executable(const MappedFile& file, uint64_t offset, uint64_t size) {
  void* copy = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) return copy;
  memcpy(copy, file.data + offset, size);
  char* begin = static_cast<char*>(copy);
  __builtin___clear_cache(begin, begin + size);
  if (mprotect(copy, size, PROT_READ | PROT_EXEC) == 0) return copy;
  const int reason = errno;
  munmap(copy, size);
  errno = reason;
  return MAP_FAILED;
}

}  // namespace

izh_status code_map(const MappedFile& file, const char* name, uint64_t offset, uint64_t size,
                    MappedCode* out, izh_error* error) {
  void* code = map_executable(file, offset, size);
  if (code == MAP_FAILED) code = copy_executable(file, offset, size);
  if (code == MAP_FAILED) {
    return fail(error, IZH_IO,
                "the system does not let this process run the code of %s (%s): allow executable "
                "memory for it (SELinux execmem, systemd MemoryDenyWriteExecute)",
                name, strerror(errno));
  }
  out->data = static_cast<const uint8_t*>(code);
  out->size = size;
  return IZH_OK;
}

void code_unmap(MappedCode* code) {
  if (code->data) munmap(const_cast<uint8_t*>(code->data), code->size);
  *code = MappedCode();
}

}  // namespace izh
