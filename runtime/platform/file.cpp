// Files and code through mmap.

#include "runtime/platform/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "runtime/base/status.h"
#include "runtime/platform/memory.h"
#include "runtime/platform/read_ahead.h"

namespace izh {

namespace {

// Large enough that calls cost nothing, small enough for the caches.
constexpr uint64_t kReadBytes = uint64_t{1} << 20;

izh_status open_regular(const char* path, MappedFile* out, izh_error* error) {
  // Without O_NONBLOCK a named pipe would wait for its writer.
  const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    return fail(error, IZH_IO, "cannot open %s: %s", path, strerror(errno));
  }
  struct stat facts;
  izh_status status = IZH_OK;
  if (fstat(descriptor, &facts) != 0) {
    status = fail(error, IZH_IO, "cannot read the size of %s: %s", path, strerror(errno));
  } else if (!S_ISREG(facts.st_mode)) {
    status = fail(error, IZH_IO, "%s is not a regular file, but an artifact has to be one", path);
  } else if (facts.st_size <= 0) {
    status = fail(error, IZH_BAD_ARTIFACT, "%s is empty", path);
  }
  if (status != IZH_OK) {
    close(descriptor);
    return status;
  }
  out->size = static_cast<uint64_t>(facts.st_size);
  out->descriptor = descriptor;
  return IZH_OK;
}

izh_status map_bytes(const char* path, MappedFile* file, izh_error* error) {
  void* data = mmap(nullptr, file->size, PROT_READ, MAP_PRIVATE, file->descriptor, 0);
  if (data == MAP_FAILED) return fail(error, IZH_IO, "cannot map %s: %s", path, strerror(errno));
  file->data = static_cast<const uint8_t*>(data);
  return IZH_OK;
}

izh_status fill(const char* path, const MappedFile& file, const ReadAhead* ahead, uint8_t* out,
                izh_error* error) {
  const uint64_t size = file.size;
  for (uint64_t done = 0; done < size;) {
    const uint64_t left = size - done;
    read_ahead_wait(ahead, left < kReadBytes ? size : done + kReadBytes);
    const ssize_t count = pread(file.descriptor, out + done, left < kReadBytes ? left : kReadBytes,
                                static_cast<off_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(error, IZH_IO, "cannot read %s: %s", path, strerror(errno));
    if (count == 0) {
      return fail(error, IZH_IO, "%s became shorter while it was read: copy it again", path);
    }
    done += static_cast<uint64_t>(count);
  }
  return IZH_OK;
}

izh_status copy_bytes(const char* path, MappedFile* file, izh_error* error) {
  const unsigned long long megabytes = file->size >> 20, limit = memory_limit() >> 20;
  void* memory = megabytes < limit ? pages_alloc(file->size, /*huge=*/true) : nullptr;
  if (!memory) {
    return fail(error, IZH_OUT_OF_MEMORY,
                "reading %s takes %llu MiB, but this process may use %llu MiB: map it instead, "
                "which needs no memory of its own",
                path, megabytes, limit);
  }
  file->data = static_cast<const uint8_t*>(memory);
  file->copied = true;
  // Calls that read wait for each of their windows; a mapping that is read
  // ahead keeps the disk busy.
  MappedFile view = *file;
  view.copied = false;
  const bool mapped = map_bytes(path, &view, nullptr) == IZH_OK;
  ReadAhead* ahead = mapped ? read_ahead_start(view, 0, view.size) : nullptr;
  const izh_status status = fill(path, *file, ahead, static_cast<uint8_t*>(memory), error);
  read_ahead_stop(ahead);
  if (mapped) munmap(const_cast<uint8_t*>(view.data), view.size);
  return status;
}

izh_status open_with(izh_status (*get)(const char*, MappedFile*, izh_error*), const char* path,
                     MappedFile* out, izh_error* error) {
  MappedFile file;
  IZH_TRY(open_regular(path, &file, error));
  const izh_status status = get(path, &file, error);
  if (status != IZH_OK) {
    file_unmap(&file);
    return status;
  }
  *out = file;
  return IZH_OK;
}

}  // namespace

izh_status file_map(const char* path, MappedFile* out, izh_error* error) {
  return open_with(map_bytes, path, out, error);
}

izh_status file_read(const char* path, MappedFile* out, izh_error* error) {
  return open_with(copy_bytes, path, out, error);
}

void file_unmap(MappedFile* file) {
  // Bytes that are not a file's belong to the caller.
  if (file->descriptor >= 0) {
    void* data = const_cast<uint8_t*>(file->data);
    if (file->copied) {
      pages_free(data, file->size);
    } else if (data) {
      munmap(data, file->size);
    }
    close(file->descriptor);
  }
  *file = MappedFile();
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
