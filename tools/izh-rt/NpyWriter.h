// Writes a two-dimensional float32 array as a .npy file (version 1.0), row by
// row.

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
  // Removes a file that was not closed.
  ~NpyWriter();

private:
  bool fail();

  std::string path;
  FILE *file = nullptr;
};

} // namespace izh::rt
