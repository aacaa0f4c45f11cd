// Which cores may be used.

#include "runtime/platform/cores.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <set>

namespace izh {
namespace {

TEST(CoresTest, NamesTheCoresOfTheAffinityMaskOnce) {
  cpu_set_t set;
  ASSERT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
  std::set<int> expected;
  for (int id = 0; id < CPU_SETSIZE; ++id) {
    if (CPU_ISSET(id, &set)) expected.insert(id);
  }
  Cores cores;
  usable_cores(&cores);
  ASSERT_TRUE(cores.known);
  EXPECT_EQ(std::set<int>(cores.ids, cores.ids + cores.count), expected);
  EXPECT_EQ(cores.count, expected.size());
}

TEST(CoresTest, FollowsANarrowerMask) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  Cores all;
  usable_cores(&all);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(all.ids[all.count - 1], &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  Cores narrow;
  usable_cores(&narrow);
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
  EXPECT_EQ(narrow.count, 1u);
  EXPECT_EQ(narrow.physical, 1u);
  EXPECT_EQ(narrow.ids[0], all.ids[all.count - 1]);
  EXPECT_EQ(default_threads(narrow), 1u);
}

TEST(CoresTest, DefaultsToPhysicalCoresWithinTheQuota) {
  Cores cores = {};
  cores.count = 16;
  cores.physical = 8;
  cores.quota = 3;
  EXPECT_EQ(default_threads(cores), 3u);
  cores.quota = kMaxCores;
  EXPECT_EQ(default_threads(cores), 8u);
}

}  // namespace
}  // namespace izh
