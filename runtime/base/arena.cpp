// The bump allocator.

#include "runtime/base/arena.h"

namespace izh {

izh_status arena_alloc(Arena* arena, size_t size, size_t align, void** out) {
  *out = nullptr;
  if (align == 0 || (align & (align - 1)) != 0) return IZH_INVALID_ARGUMENT;
  // Align the address, not the offset: the caller's block may start anywhere.
  const uintptr_t top = reinterpret_cast<uintptr_t>(arena->base) + arena->used;
  const size_t padding = static_cast<size_t>(-top & (align - 1));
  // Two comparisons, because padding + size may overflow.
  const size_t left = arena->capacity - arena->used;
  if (padding > left || size > left - padding) return IZH_OUT_OF_MEMORY;
  *out = arena->base + arena->used + padding;
  arena->used += padding + size;
  return IZH_OK;
}

}  // namespace izh
