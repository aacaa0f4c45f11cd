// Reads the one-line files that the kernel offers below /proc and /sys.

#pragma once

#include <cstddef>

namespace izh {

// The first `capacity` - 1 bytes of the file, zero-terminated. False if it
// can't be read: callers then do without.
[[nodiscard]] bool read_small_file(const char* path, char* out, size_t capacity);

}  // namespace izh
