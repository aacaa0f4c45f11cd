// A bump allocator over one block that the caller owns. Nothing is freed
// singly; the whole ends with the block.

#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/include/izh/izh.h"

namespace izh {

struct Arena {
  uint8_t* base;
  size_t capacity;
  size_t used;
};

// Hands out `size` bytes aligned to `align`, a power of two, in `*out`.
// On failure `*out` is NULL and the arena is unchanged.
[[nodiscard]] izh_status arena_alloc(Arena* arena, size_t size, size_t align, void** out);

}  // namespace izh
