// The heap is libc's; pages come from mmap.

#include "runtime/platform/memory.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>

#include "runtime/platform/control_group.h"

namespace izh {

void* heap_alloc(size_t bytes) { return bytes ? malloc(bytes) : nullptr; }
void* heap_resize(void* block, size_t bytes) { return realloc(block, bytes); }
void heap_free(void* block) { free(block); }

namespace {

constexpr size_t kHugePage = size_t{2} << 20;

size_t round_up(size_t bytes, size_t to) { return (bytes + to - 1) & ~(to - 1); }

size_t page_size() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

void* pages_alloc(size_t bytes, bool huge) {
  if (bytes == 0 || bytes > SIZE_MAX / 4) return nullptr;
  const size_t size = round_up(bytes, page_size());
  // A small block would only waste memory on a huge page.
  huge = huge && bytes >= kHugePage;
  const size_t slack = huge ? kHugePage : 0;
  void* raw = mmap(nullptr, size + slack, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  if (!huge) return raw;
  char* begin = static_cast<char*>(raw);
  const size_t skip = -reinterpret_cast<uintptr_t>(begin) & (kHugePage - 1);
  if (skip) munmap(begin, skip);
  if (slack - skip) munmap(begin + skip + size, slack - skip);
  madvise(begin + skip, size, MADV_HUGEPAGE);
  return begin + skip;
}

void pages_free(void* pages, size_t bytes) {
  if (pages) munmap(pages, round_up(bytes, page_size()));
}

uint64_t memory_limit() {
  const long count = sysconf(_SC_PHYS_PAGES);
  uint64_t limit = count > 0 ? static_cast<uint64_t>(count) * page_size() : UINT64_MAX;
  auto visit = [](void* argument, const ControlGroup& group) {
    uint64_t* least = static_cast<uint64_t*>(argument);
    char text[64];
    const char* file = group.unified ? "memory.max" : "memory.limit_in_bytes";
    if (!read_group_file(group, file, text, sizeof(text))) return;
    // "max", or a number beyond all memory where there is no limit.
    char* end = text;
    const unsigned long long value = strtoull(text, &end, 10);
    if (end != text && value > 0 && value < *least) *least = value;
  };
  visit_control_groups("memory", visit, &limit);
  rlimit space;
  if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur < limit) limit = space.rlim_cur;
  return limit;
}

}  // namespace izh
