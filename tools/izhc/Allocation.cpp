// malloc and its kin for the whole process, MLIR's and LLVM's libraries
// included: those use what they get without a look. A request that can't be
// met ends the process with a sentence. glibc's own functions do the work.

#include "tools/izhc/Commands.h"
#include <cerrno>
#include <cstddef>

extern "C" {

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *block, size_t bytes);

static void *checked(void *block, bool wanted) {
  if (!block && wanted)
    izhc::tool::giveUp("out of memory");
  return block;
}

void *malloc(size_t bytes) { return checked(__libc_malloc(bytes), true); }

void *calloc(size_t count, size_t bytes) { return checked(__libc_calloc(count, bytes), true); }

// Of no bytes it frees the block.
void *realloc(void *block, size_t bytes) {
  return checked(__libc_realloc(block, bytes), bytes != 0);
}

} // extern "C"
