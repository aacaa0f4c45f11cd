// How dispatches are cut into pieces: every unit once, in long runs.

#include "runtime/exec/program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

namespace izh {
namespace {

struct Ranges {
  std::mutex mutex;
  std::vector<std::pair<int64_t, int64_t>> seen;
};

void note(void* const* bindings, const int64_t*, int64_t begin, int64_t end) {
  Ranges* ranges = static_cast<Ranges*>(bindings[0]);
  std::lock_guard<std::mutex> lock(ranges->mutex);
  ranges->seen.emplace_back(begin, end);
}

// The ranges that a kernel with so many units was called with, in order.
std::vector<std::pair<int64_t, int64_t>> rangesOf(int64_t units, int64_t grain, uint32_t threads,
                                                  Extent extent) {
  Cores cores;
  usable_cores(&cores);
  Team* team = nullptr;
  EXPECT_EQ(team_create(threads, cores, &team, nullptr), IZH_OK);
  Ranges ranges;
  void* bindings[] = {&ranges};
  Program program;
  EXPECT_TRUE(program.dispatches.resize(1) && program.pieces.resize(1));
  Program::Dispatch& dispatch = program.dispatches[0];
  dispatch = {};
  dispatch.kernel = &note;
  dispatch.bindings = bindings;
  dispatch.units_each = units;
  dispatch.grain = grain;
  dispatch.extent = extent;
  program_run(&program, team, {1, 1, 1, 1, 1});
  team_destroy(team);
  std::sort(ranges.seen.begin(), ranges.seen.end());
  return ranges.seen;
}

TEST(ProgramTest, EveryUnitIsComputedOnceHoweverManyThreadsThereAre) {
  for (uint32_t threads : {1u, 2u, 3u, 8u}) {
    for (int64_t units : {1, 2, 7, 16, 33, 36, 97, 1000}) {
      for (int64_t grain : {1, 3, 50}) {
        for (Extent extent : {Extent::Fixed, Extent::Tiles}) {
          SCOPED_TRACE(::testing::Message() << units << " units by " << grain << ", " << threads);
          int64_t next = 0;
          for (auto [begin, end] : rangesOf(units, grain, threads, extent)) {
            EXPECT_EQ(begin, next);
            EXPECT_LT(begin, end);
            next = end;
          }
          EXPECT_EQ(next, units);
        }
      }
    }
  }
}

TEST(ProgramTest, ThreadsFirstTakeNearlyTheirShareOfFewGrains) {
  using Pairs = std::vector<std::pair<int64_t, int64_t>>;
  EXPECT_EQ(rangesOf(48, 3, 2, Extent::Fixed),
            (Pairs{{0, 21}, {21, 42}, {42, 43}, {43, 44}, {44, 45}, {45, 46}, {46, 47}, {47, 48}}));
  EXPECT_EQ(rangesOf(64, 4, 1, Extent::Fixed), (Pairs{{0, 64}}));
}

TEST(ProgramTest, PiecesOfAnEvenGrainAreEven) {
  for (int64_t grain : {2, 4, 6, 10, 12}) {
    for (uint32_t threads : {1u, 2u, 3u}) {
      SCOPED_TRACE(::testing::Message() << "grain " << grain << ", " << threads << " threads");
      for (auto [begin, end] : rangesOf(64, grain, threads, Extent::Fixed)) {
        EXPECT_EQ((end - begin) % 2, 0) << begin << " to " << end;
      }
    }
  }
}

TEST(ProgramTest, UnitsOfUnequalSizeAndLargeDispatchesAreTakenByTheGrain) {
  EXPECT_EQ(rangesOf(8, 1, 2, Extent::Tiles).size(), 8u);
  EXPECT_EQ(rangesOf(400, 4, 2, Extent::Fixed).size(), 100u);
}

TEST(ProgramTest, ManyTilesAreTakenSeveralAtATime) {
  const auto ranges = rangesOf(256, 1, 2, Extent::Tiles);
  ASSERT_EQ(ranges.size(), 32u);
  for (auto [begin, end] : ranges) EXPECT_EQ(end - begin, 8);
}

}  // namespace
}  // namespace izh
