// Files mapped into memory: an artifact is read in place, and copied only if
// that is asked for.

#pragma once

#include <cstdint>

#include "runtime/include/izh/izh.h"

namespace izh {

// A view of a whole file. The file may not be cut while it is mapped.
struct MappedFile {
  const uint8_t* data = nullptr;
  uint64_t size = 0;
  int descriptor = -1;  // stays open: code is mapped from it again; -1: not a file
  bool copied = false;  // `data` is memory of this process that holds the bytes
};

// Maps the regular file at `path`; an empty one is an error.
[[nodiscard]] izh_status file_map(const char* path, MappedFile* out, izh_error* error);
// The same, with the bytes copied into huge pages where the system has them.
[[nodiscard]] izh_status file_read(const char* path, MappedFile* out, izh_error* error);
// Ends either.
void file_unmap(MappedFile* file);

// Machine code that may be run.
struct MappedCode {
  const uint8_t* data = nullptr;
  uint64_t size = 0;
};

// Makes `size` bytes at `offset` (a multiple of 64 KiB, checked to lie in the
// file) runnable: maps the file again, or copies where that is refused.
// `name` is the file's, for the sentence on failure.
[[nodiscard]] izh_status code_map(const MappedFile& file, const char* name, uint64_t offset,
                                  uint64_t size, MappedCode* out, izh_error* error);
void code_unmap(MappedCode* code);

}  // namespace izh
