// One open and one read: files of /proc and /sys are read whole or not at all.

#include "runtime/platform/small_file.h"

#include <fcntl.h>
#include <unistd.h>

namespace izh {

bool read_small_file(const char* path, char* out, size_t capacity) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const ssize_t count = read(file, out, capacity - 1);
  close(file);
  if (count < 0) return false;
  out[count] = 0;
  return true;
}

}  // namespace izh
