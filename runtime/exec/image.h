// An artifact in memory, verified: after this, whatever the plan binds lies
// where it may, so that running it needs no checks.

#pragma once

#include <cstdint>

#include "runtime/exec/root.h"
#include "runtime/include/izh/izh.h"

namespace izh {

constexpr uint32_t kMaxStepTokens = 4096;
constexpr uint32_t kPageTokens = 64;
// Offsets of bindings are multiples of this.
constexpr uint64_t kBindingAlignment = 64;

struct Image {
  const uint8_t* data = nullptr;  // 64-byte aligned
  uint64_t size = 0;
  uint64_t root_offset = 0;
  uint64_t root_size = 0;
  Root root;
};

// Checks the fixed header, the root's hash and form, and every section,
// variant and dispatch of the `size` bytes at `data`. `name` is the file's,
// for the sentences. Hashes of sections are compared by image_check_hash.
[[nodiscard]] izh_status image_verify(const uint8_t* data, uint64_t size, const char* name,
                                      Image* out, izh_error* error);

// Compares the bytes at `offset` with `hash`; the range is known to lie in the
// file. `what` names it in the sentence.
[[nodiscard]] izh_status image_check_hash(const Image& image, const char* name, const char* what,
                                          uint64_t offset, uint64_t size, uint64_t hash,
                                          izh_error* error);

// The part of image_verify that needs no file: the plan against itself.
[[nodiscard]] izh_status plan_verify(const Root& root, const char* name, izh_error* error);

}  // namespace izh
