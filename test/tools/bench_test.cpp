// The arithmetic of the benchmark: predictions, comparisons, tables.

#include "tools/izh-rt/BenchReport.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace izh::rt;

namespace {

TEST(BenchTest, TakesMediansAndDeviations) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(deviation({5}), 0);
  EXPECT_DOUBLE_EQ(deviation({2, 4, 4, 4, 5, 5, 7, 9}), 2.1380899352993952);
}

// 1 GB at 50 GB/s takes 20 ms, 4 G operations at 100 G/s 40 ms.
TEST(BenchTest, PredictsTheSlowerOfMemoryAndArithmetic) {
  ModelWork work = {1'000'000'000, 3'000'000'000, 1'000'000'000, 128};
  MachineLimits fast = {2, 50, 1000, 0, ""}, weak = {2, 50, 100, 0, ""};
  EXPECT_DOUBLE_EQ(predictGeneration(fast, work, 1'000'000'000), 50);
  EXPECT_DOUBLE_EQ(predictGeneration(fast, work, 2'000'000'000), 25);
  EXPECT_DOUBLE_EQ(predictGeneration(weak, work, 1'000'000'000), 25);
  // Two steps: 769 G operations, or 2 GB.
  EXPECT_NEAR(predictPrompt(fast, work, 256), 256 / 0.769, 1e-9);
  EXPECT_NEAR(predictPrompt({2, 1, 1000, 0, ""}, work, 256), 128, 1e-9);
  EXPECT_EQ(predictGeneration({}, work, 1), 0);
}

// 1000 phases of 5 us are 5 ms more.
TEST(BenchTest, ThreadsMeetBehindEveryPhase) {
  ModelWork work = {1'000'000'000, 3'000'000'000, 1'000'000'000, 128, 1000};
  MachineLimits machine = {2, 50, 1000, 5, ""};
  EXPECT_DOUBLE_EQ(predictGeneration(machine, work, 1'000'000'000), 40);
  EXPECT_NEAR(predictPrompt(machine, work, 256), 256 / 0.779, 1e-9);
}

TEST(BenchTest, ComparesTheFirstMinuteWithTheLast) {
  Sustained sustained;
  sustained.rates.assign(200, 50);
  std::fill(sustained.rates.begin(), sustained.rates.begin() + 60, 100);
  std::fill(sustained.rates.end() - 60, sustained.rates.end(), 80);
  compareEnds(&sustained);
  EXPECT_DOUBLE_EQ(sustained.first, 100);
  EXPECT_DOUBLE_EQ(sustained.last, 80);
  // Less than two minutes: halves.
  sustained.rates = {10, 20, 99, 30, 40};
  compareEnds(&sustained);
  EXPECT_DOUBLE_EQ(sustained.first, 15);
  EXPECT_DOUBLE_EQ(sustained.last, 35);
}

BenchResult twoRows() {
  BenchRow first, second;
  first.threads = second.threads = 2;
  first.prompt = {100, 300, 200};
  first.generation = {10, 30, 20};
  first.generationPredicted = 40;
  first.generationShare = 0.5;
  first.limits = second.limits = {2, 51.5, 940, 0, "dots"};
  second.depth = 512;
  second.generation = {7};
  return {{first.limits}, {first, second}, {}};
}

TEST(BenchTest, TablesLeaveOutWhatWasNotMeasured) {
  izh_model_info info = {};
  info.variant = "best";
  std::string table = benchMarkdown(twoRows(), BenchOptions(), info);
  EXPECT_NE(table.find("| 2 | 0 | 200.0 |  |  | 20.0 | 40.0 | 50 % | 51.5 |\n"), std::string::npos)
      << table;
  EXPECT_NE(table.find("| 2 | 512 |  |  |  | 7.0 |"), std::string::npos) << table;
  std::string json = benchJson(twoRows(), BenchOptions(), info);
  EXPECT_NE(json.find("\"context\": 512"), std::string::npos) << json;
  EXPECT_NE(json.find("\"pp_tps\": null"), std::string::npos) << json;
  EXPECT_EQ(json.find("sustained"), std::string::npos) << json;
}

TEST(BenchTest, PlotsOneLineANumberOfThreads) {
  izh_model_info info = {};
  info.variant = info.name = "m";
  BenchResult result = twoRows();
  BenchRow alone = result.rows[0];
  alone.threads = 1;
  result.rows.push_back(alone);
  std::string svg = benchSvg(result, info);
  EXPECT_NE(svg.find(">2 threads<"), std::string::npos);
  EXPECT_NE(svg.find(">1 thread<"), std::string::npos);
  EXPECT_NE(svg.find(">1 thread, predicted<"), std::string::npos);
}

} // namespace
