// Runs kernels that remote.cpp sends, on a machine (mostly an emulated one)
// that has nothing but this program. A call is nine 64-bit words (bytes of
// code, entry, three parameters, begin, end, blocks, bindings), the blocks'
// sizes, block and offset of each binding, the code, the blocks; the answer is
// the blocks as the kernel left them.

#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

typedef void kernel(void *const *bindings, const int64_t *params, int64_t begin, int64_t end);

enum { kMost = 64 };

static void receive(void *data, size_t bytes) {
  char *at = data;
  while (bytes) {
    ssize_t n = read(STDIN_FILENO, at, bytes);
    // No more calls.
    if (n <= 0)
      _exit(0);
    at += n;
    bytes -= n;
  }
}

static void send(const void *data, size_t bytes) {
  const char *at = data;
  while (bytes) {
    ssize_t n = write(STDOUT_FILENO, at, bytes);
    if (n <= 0)
      _exit(1);
    at += n;
    bytes -= n;
  }
}

int main(void) {
  for (;;) {
    uint64_t words[9], sizes[kMost], places[kMost][2];
    receive(words, sizeof(words));
    uint64_t code_bytes = words[0], blocks = words[7], bindings = words[8];
    if (blocks > kMost || bindings > kMost)
      return 1;
    receive(sizes, blocks * sizeof(sizes[0]));
    receive(places, bindings * sizeof(places[0]));
    char *code = mmap(NULL, code_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED)
      return 1;
    receive(code, code_bytes);
    char *memory[kMost];
    for (uint64_t i = 0; i < blocks; ++i) {
      memory[i] = aligned_alloc(4096, (sizes[i] + 4095) / 4096 * 4096);
      if (!memory[i])
        return 1;
      receive(memory[i], sizes[i]);
    }
    void *pointers[kMost];
    for (uint64_t i = 0; i < bindings; ++i)
      pointers[i] = memory[places[i][0]] + places[i][1];
    if (mprotect(code, code_bytes, PROT_READ | PROT_EXEC) != 0)
      return 1;
    __builtin___clear_cache(code, code + code_bytes);
    int64_t params[3] = {words[2], words[3], words[4]};
    ((kernel *)(code + words[1]))(pointers, params, words[5], words[6]);
    for (uint64_t i = 0; i < blocks; ++i) {
      send(memory[i], sizes[i]);
      free(memory[i]);
    }
    munmap(code, code_bytes);
  }
}
