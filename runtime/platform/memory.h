// Memory from the operating system: pages for buffers and caches. The heap is
// declared in runtime/base/heap.h and implemented beside this.

#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/heap.h"

namespace izh {

// `bytes` of zeroes at a page boundary, or NULL. Pages take memory when they
// are first touched. `huge` asks for huge pages where the system has them, and
// then aligns to 2 MiB.
[[nodiscard]] void* pages_alloc(size_t bytes, bool huge);
// `bytes` as given to pages_alloc; NULL is allowed.
void pages_free(void* pages, size_t bytes);

// Bytes that this process may use at most: the machine's memory, or the limit
// of a control group or of the address space if that is smaller.
uint64_t memory_limit();

}  // namespace izh
