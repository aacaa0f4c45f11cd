// The pool of cache pages.

#include "runtime/exec/page_pool.h"

#include <gtest/gtest.h>

#include <set>

namespace izh {
namespace {

TEST(PagePoolTest, HandsOutEachPageOnceFromTheLowestOn) {
  PagePool pool;
  ASSERT_TRUE(pool.init(10));
  EXPECT_EQ(pool.available(), 10u);
  for (int32_t page = 0; page < 10; ++page) EXPECT_EQ(pool.take(), page);
  EXPECT_EQ(pool.available(), 0u);
}

TEST(PagePoolTest, ReusesWhatWasGivenBackLast) {
  PagePool pool;
  ASSERT_TRUE(pool.init(4));
  for (int i = 0; i < 3; ++i) (void)pool.take();
  pool.give(1);
  EXPECT_EQ(pool.take(), 1);
  EXPECT_EQ(pool.take(), 3);
}

TEST(PagePoolTest, MayBeEmpty) {
  PagePool pool;
  ASSERT_TRUE(pool.init(0));
  EXPECT_EQ(pool.available(), 0u);
}

}  // namespace
}  // namespace izh
