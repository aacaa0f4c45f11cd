// The team of threads: every piece runs once, phases keep their order.

#include "runtime/platform/team.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <cfenv>
#include <chrono>
#include <thread>
#include <vector>

namespace izh {
namespace {

Cores machine() {
  Cores cores;
  usable_cores(&cores);
  return cores;
}

struct TeamDeleter {
  void operator()(Team* team) const { team_destroy(team); }
};
using OwnedTeam = std::unique_ptr<Team, TeamDeleter>;

OwnedTeam makeTeam(uint32_t threads) {
  Team* team = nullptr;
  izh_error error = {};
  EXPECT_EQ(team_create(threads, machine(), &team, &error), IZH_OK) << error.message;
  return OwnedTeam(team);
}

// Counts how often each piece ran, and that all earlier phases were complete.
struct Record {
  explicit Record(std::vector<uint32_t> sizes) : pieces(std::move(sizes)) {
    for (uint32_t count : pieces) runs.emplace_back(count);
    finished = std::vector<std::atomic<uint32_t>>(pieces.size());
  }

  static void work(void* argument, uint32_t phase, uint32_t piece) {
    Record* record = static_cast<Record*>(argument);
    for (uint32_t before = 0; before < phase; ++before) {
      if (record->finished[before].load(std::memory_order_relaxed) != record->pieces[before]) {
        record->disorder = true;
      }
    }
    // Not atomic on purpose: the order of phases has to make this safe.
    ++record->total[piece % 16];
    record->runs[phase][piece].fetch_add(1, std::memory_order_relaxed);
    record->finished[phase].fetch_add(1, std::memory_order_relaxed);
    if (record->slow && piece == 0) std::this_thread::sleep_for(std::chrono::microseconds(300));
  }

  Phases phases() {
    return {pieces.data(), static_cast<uint32_t>(pieces.size()), &Record::work, this};
  }

  void expectAllOnce() const {
    EXPECT_FALSE(disorder);
    for (size_t phase = 0; phase < pieces.size(); ++phase) {
      for (uint32_t piece = 0; piece < pieces[phase]; ++piece) {
        ASSERT_EQ(runs[phase][piece].load(), 1u) << "phase " << phase << " piece " << piece;
      }
    }
  }

  std::vector<uint32_t> pieces;
  std::vector<std::vector<std::atomic<uint32_t>>> runs;
  std::vector<std::atomic<uint32_t>> finished;
  std::atomic<uint32_t> total[16] = {};
  std::atomic<bool> disorder{false};
  bool slow = false;
};

TEST(TeamTest, RunsEveryPieceOnceWithAnyNumberOfThreads) {
  const std::vector<std::vector<uint32_t>> shapes = {
      {1}, {0}, {}, {1, 1, 1, 1}, {5, 0, 0, 17, 1, 300, 2}, {0, 3, 0}, {64, 64, 64, 64}};
  for (uint32_t threads : {1u, 2u, 3u, 7u, 16u}) {
    OwnedTeam team = makeTeam(threads);
    EXPECT_EQ(team_threads(team.get()), threads);
    for (const auto& shape : shapes) {
      Record record(shape);
      team_run(team.get(), record.phases());
      record.expectAllOnce();
    }
  }
}

TEST(TeamTest, RunsFollowEachOtherWithoutPause) {
  OwnedTeam team = makeTeam(4);
  for (int run = 0; run < 300; ++run) {
    Record record({static_cast<uint32_t>(run % 9), 1, 4, static_cast<uint32_t>(run % 3)});
    team_run(team.get(), record.phases());
    record.expectAllOnce();
  }
}

TEST(TeamTest, WakesThreadsThatFellAsleep) {
  OwnedTeam team = makeTeam(3);
  for (int run = 0; run < 20; ++run) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    Record record({8, 1, 8});
    record.slow = true;
    team_run(team.get(), record.phases());
    record.expectAllOnce();
  }
}

// What phase 1 reads was written without atomics by whichever thread ran phase 0.
TEST(TeamTest, LaterPhasesSeeWhatEarlierOnesWrote) {
  struct Data {
    uint32_t first[64];
    uint32_t second[64];
  } data = {};
  auto work = [](void* argument, uint32_t phase, uint32_t piece) {
    Data* values = static_cast<Data*>(argument);
    if (phase == 0) values->first[piece] = piece + 1;
    if (phase == 1) values->second[piece] = values->first[63 - piece];
  };
  const uint32_t pieces[] = {64, 64};
  OwnedTeam team = makeTeam(4);
  for (int run = 0; run < 50; ++run) {
    data = {};
    team_run(team.get(), {pieces, 2, work, &data});
    for (uint32_t i = 0; i < 64; ++i) ASSERT_EQ(data.second[i], 64 - i);
  }
}

TEST(TeamTest, EndsCleanlyWithoutARun) {
  for (uint32_t threads : {1u, 2u, 8u}) makeTeam(threads);
}

TEST(TeamTest, RefusesAbsurdCounts) {
  Team* team = nullptr;
  izh_error error = {};
  EXPECT_EQ(team_create(0, machine(), &team, &error), IZH_LIMIT);
  EXPECT_EQ(team_create(kMaxCores + 1, machine(), &team, &error), IZH_LIMIT);
  EXPECT_EQ(team, nullptr);
  EXPECT_STRNE(error.message, "");
}

TEST(TeamTest, SurvivesChangesOfAffinity) {
  const Cores cores = machine();
  if (!cores.known) GTEST_SKIP() << "the system does not tell its cores";
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  OwnedTeam team = makeTeam(2);
  for (int run = 0; run < 40; ++run) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cores.ids[run % cores.count], &one);
    (void)sched_setaffinity(0, sizeof(one), &one);
    Record record({16, 1, 16});
    team_run(team.get(), record.phases());
    record.expectAllOnce();
  }
  (void)sched_setaffinity(0, sizeof(before), &before);
}

TEST(TeamTest, WorksInTheDefaultRoundingModeAndRestoresTheCallers) {
  auto work = [](void* argument, uint32_t, uint32_t) {
    // A sum that rounding upwards would make larger than 1.
    volatile float one = 1.0f, tiny = 1e-10f;
    if (one + tiny != 1.0f) *static_cast<std::atomic<bool>*>(argument) = true;
  };
  std::atomic<bool> rounded_up{false};
  const uint32_t pieces[] = {64};
  ASSERT_EQ(fesetround(FE_UPWARD), 0);
  for (uint32_t threads : {1u, 2u})
    team_run(makeTeam(threads).get(), {pieces, 1, work, &rounded_up});
  EXPECT_EQ(fegetround(), FE_UPWARD);
  fesetround(FE_TONEAREST);
  EXPECT_FALSE(rounded_up);
}

}  // namespace
}  // namespace izh
