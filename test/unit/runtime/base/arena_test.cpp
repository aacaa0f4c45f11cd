// The bump allocator.

#include "runtime/base/arena.h"

#include <gtest/gtest.h>

namespace izh {
namespace {

TEST(ArenaTest, AlignsAddresses) {
  alignas(64) uint8_t block[256];
  Arena arena = {block + 1, sizeof(block) - 1, 0};
  void* out = nullptr;
  ASSERT_EQ(arena_alloc(&arena, 3, 64, &out), IZH_OK);
  EXPECT_EQ(out, block + 64);
  ASSERT_EQ(arena_alloc(&arena, 1, 1, &out), IZH_OK);
  EXPECT_EQ(out, block + 67);
}

TEST(ArenaTest, LeavesTheArenaUnchangedWhenFull) {
  uint8_t block[32];
  Arena arena = {block, sizeof(block), 0};
  void* out = block;
  EXPECT_EQ(arena_alloc(&arena, SIZE_MAX, 1, &out), IZH_OUT_OF_MEMORY);
  EXPECT_EQ(out, nullptr);
  EXPECT_EQ(arena.used, 0u);
  EXPECT_EQ(arena_alloc(&arena, 33, 1, &out), IZH_OUT_OF_MEMORY);
  EXPECT_EQ(arena_alloc(&arena, 32, 1, &out), IZH_OK);
}

TEST(ArenaTest, RefusesAlignmentsThatAreNoPowersOfTwo) {
  uint8_t block[32];
  Arena arena = {block, sizeof(block), 0};
  void* out = nullptr;
  EXPECT_EQ(arena_alloc(&arena, 1, 0, &out), IZH_INVALID_ARGUMENT);
  EXPECT_EQ(arena_alloc(&arena, 1, 12, &out), IZH_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace izh
