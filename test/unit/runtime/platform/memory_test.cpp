// Pages from the system.

#include "runtime/platform/memory.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace izh {
namespace {

TEST(MemoryTest, GivesZeroedAlignedPages) {
  for (const bool huge : {false, true}) {
    for (const size_t bytes : {size_t{1}, size_t{4097}, size_t{3} << 20, (size_t{2} << 20) + 1}) {
      uint8_t* pages = static_cast<uint8_t*>(pages_alloc(bytes, huge));
      ASSERT_NE(pages, nullptr);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(pages) % 4096, 0u);
      EXPECT_EQ(pages[0], 0);
      EXPECT_EQ(pages[bytes - 1], 0);
      pages[0] = pages[bytes - 1] = 1;
      pages_free(pages, bytes);
    }
  }
}

TEST(MemoryTest, RefusesWhatCannotBe) {
  EXPECT_EQ(pages_alloc(0, false), nullptr);
  EXPECT_EQ(pages_alloc(SIZE_MAX, true), nullptr);
  EXPECT_EQ(pages_alloc(SIZE_MAX / 2 + 1, false), nullptr);
  pages_free(nullptr, 0);
}

// The address space is limited in a child, so that nothing else meets the limit.
TEST(MemoryTest, KnowsTheLimitOfTheAddressSpace) {
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit = {uint64_t{123} << 20, before.rlim_max};
    _exit(setrlimit(RLIMIT_AS, &limit) == 0 && memory_limit() == uint64_t{123} << 20 ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(MemoryTest, KnowsTheMachinesMemory) {
  EXPECT_GT(memory_limit(), uint64_t{16} << 20);
  EXPECT_LT(memory_limit(), uint64_t{1} << 52);
}

}  // namespace
}  // namespace izh
