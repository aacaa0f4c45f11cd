// Writes a two-dimensional float32 array as a .npy file (version 1.0), row by
// row. A file appears under its name only when it is complete; pipes and
// devices are written as they are.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

namespace izh::rt {

class NpyWriter {
public:
  // The message of a failure is printed by the function that returns false.
  bool open(const std::string &path, uint64_t rows, uint64_t columns);
  bool write(const float *values, size_t count);
  bool close();
  // Removes what was not closed.
  ~NpyWriter();

private:
  bool fail();

  // Opens the file that is written; sets `temporary` where that is another.
  FILE *create();

  std::string path, temporary;
  FILE *file = nullptr;
};

} // namespace izh::rt
