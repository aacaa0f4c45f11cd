// The growable array.

#include "runtime/base/array.h"

#include <gtest/gtest.h>

namespace izh {
namespace {

TEST(ArrayTest, GrowsAndKeepsItsElements) {
  Array<uint32_t> array;
  for (uint32_t i = 0; i < 1000; ++i) ASSERT_TRUE(array.push(i * i));
  ASSERT_EQ(array.size(), 1000u);
  for (uint32_t i = 0; i < 1000; ++i) EXPECT_EQ(array[i], i * i);
}

TEST(ArrayTest, NewElementsAreZero) {
  Array<uint64_t> array;
  ASSERT_TRUE(array.resize(4));
  array[3] = 7;
  array.clear();
  ASSERT_TRUE(array.resize(4));
  EXPECT_EQ(array[3], 0u);
}

TEST(ArrayTest, PushesAnElementOfItself) {
  Array<uint32_t> array;
  ASSERT_TRUE(array.push(5));
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(array.push(array[0]));
  EXPECT_EQ(array.back(), 5u);
}

TEST(ArrayTest, IsUnchangedWhenThereIsNoMemory) {
  Array<uint64_t> array;
  ASSERT_TRUE(array.push(1));
  EXPECT_FALSE(array.reserve(SIZE_MAX / 8));
  EXPECT_FALSE(array.resize(SIZE_MAX));
  uint64_t value = 0;
  EXPECT_FALSE(array.append(&value, SIZE_MAX));
  ASSERT_EQ(array.size(), 1u);
  EXPECT_EQ(array[0], 1u);
}

TEST(ArrayTest, MovesItsBlock) {
  Array<uint32_t> first;
  ASSERT_TRUE(first.push(3));
  Array<uint32_t> second = std::move(first);
  EXPECT_EQ(second.size(), 1u);
  EXPECT_TRUE(first.empty());
}

TEST(HeapTest, CreatesAndEndsObjects) {
  struct Pair {
    int first;
    int second;
  };
  Pair* pair = heap_create<Pair>(1, 2);
  ASSERT_NE(pair, nullptr);
  EXPECT_EQ(pair->second, 2);
  heap_destroy(pair);
  heap_destroy<Pair>(nullptr);
}

}  // namespace
}  // namespace izh
