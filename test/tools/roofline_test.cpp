// What `izhc compile --stats` predicts.

#include "tools/izhc/Roofline.h"
#include "llvm/Support/raw_ostream.h"
#include <gtest/gtest.h>

namespace izhc::tool {
namespace {

emit::Plan planOfOneGigabyte() {
  emit::Plan plan;
  plan.tokenBytes = 1'000'000'000;
  plan.tokenOperations = 3'000'000'000;
  plan.outputOperations = 1'000'000'000;
  plan.maxTokens = 128;
  plan.pageTokens = 64;
  plan.statePageBytes = {64 * 40'000, 64 * 10'000};
  return plan;
}

std::string refusal(llvm::StringRef text) {
  auto machine = parseMachine(text);
  return machine ? "" : llvm::toString(machine.takeError());
}

TEST(RooflineTest, ReadsBothLimitsInAnyOrder) {
  auto machine = parseMachine("gops=940,gbps=51.5");
  ASSERT_TRUE(bool(machine));
  EXPECT_DOUBLE_EQ(machine->gbps, 51.5);
  EXPECT_DOUBLE_EQ(machine->gops, 940);
}

TEST(RooflineTest, RefusesWhatIsNoMachine) {
  for (const char *text : {"", "gbps", "gbps=", "gbps=x,gops=1", "gbps=0,gops=1", "gbps=-1,gops=1",
                           "gbps=nan,gops=1", "gbps=inf,gops=1", "gbps=1,gbps=2", "gbps=1,gops=1,",
                           "cores=2", "gbps=1,gops=1,phase_us=-1"})
    EXPECT_NE(refusal(text), "") << text;
  EXPECT_NE(refusal("gbps=50").find("gops=NUMBER"), std::string::npos);
}

// 1 GB at 50 GB/s takes 20 ms; 4 G operations at 1000 G/s take 4 ms.
TEST(RooflineTest, GenerationIsLimitedByTheSlowerOfMemoryAndArithmetic) {
  Prediction memory = predictDecode(planOfOneGigabyte(), {50, 1000}, 0);
  EXPECT_DOUBLE_EQ(memory.tokensPerSecond, 50);
  EXPECT_TRUE(memory.memory);
  Prediction arithmetic = predictDecode(planOfOneGigabyte(), {50, 100}, 0);
  EXPECT_DOUBLE_EQ(arithmetic.tokensPerSecond, 25);
  EXPECT_FALSE(arithmetic.memory);
}

// 1000 phases of 5 us are 5 ms more.
TEST(RooflineTest, ThreadsMeetBehindEveryPhase) {
  emit::Plan plan = planOfOneGigabyte();
  plan.dispatches.resize(1000);
  auto machine = parseMachine("gbps=50,gops=1000,phase_us=5");
  ASSERT_TRUE(bool(machine));
  EXPECT_DOUBLE_EQ(predictDecode(plan, *machine, 0).tokensPerSecond, 40);
  // Two chunks.
  EXPECT_NEAR(predictPrompt(plan, *machine, 256).tokensPerSecond, 256 / 0.779, 1e-9);
}

// 50 KB for each of 20 000 tokens are as much as the weights.
TEST(RooflineTest, ContextCostsItsCache) {
  EXPECT_DOUBLE_EQ(predictDecode(planOfOneGigabyte(), {50, 1000}, 20'000).tokensPerSecond, 25);
}

// A state that a sequence has once is read for every token, however many came before.
TEST(RooflineTest, StatesOfASequenceDontGrow) {
  emit::Plan plan = planOfOneGigabyte();
  plan.statePageBytes.push_back(1'000'000'000);
  plan.sequenceStates.push_back(2);
  EXPECT_EQ(cacheBytesPerToken(plan), 50'000u);
  EXPECT_EQ(stateBytes(plan), 1'000'000'000u);
  EXPECT_DOUBLE_EQ(predictDecode(plan, {50, 1000}, 0).tokensPerSecond, 25);
}

// Layers with a window of 1000 tokens read no more, and keep a ring: whatever page
// the first token read is in, 1000 + 127 tokens lie in 19 pages of 64.
TEST(RooflineTest, WindowsDontGrow) {
  emit::Plan plan = planOfOneGigabyte();
  plan.stateWindows[1] = 1000;
  EXPECT_EQ(cacheBytesPerToken(plan), 40'000u);
  EXPECT_EQ(cacheBytesRead(plan, 500), 500u * 50'000);
  EXPECT_EQ(cacheBytesRead(plan, 2000), 2000u * 40'000 + 1000u * 10'000);
  EXPECT_EQ(windowBytes(plan), 19u * 64 * 10'000);
  EXPECT_EQ(windowBytes(planOfOneGigabyte()), 0u);
}

// 256 tokens in two chunks: 40 ms of reading, 769 G operations in 0.769 s.
TEST(RooflineTest, PromptsReadTheWeightsOnceAChunk) {
  EXPECT_NEAR(predictPrompt(planOfOneGigabyte(), {50, 1000}, 256).tokensPerSecond, 256 / 0.769,
              1e-9);
  Prediction slow = predictPrompt(planOfOneGigabyte(), {1, 1000}, 256);
  EXPECT_NEAR(slow.tokensPerSecond, 128, 1e-9);
  EXPECT_TRUE(slow.memory);
}

TEST(RooflineTest, PrintsPredictionsOnlyForAMachine) {
  std::string with, without;
  llvm::raw_string_ostream withStream(with), withoutStream(without);
  MachineLimits machine = {50, 1000};
  printRoofline(planOfOneGigabyte(), &machine, withStream);
  printRoofline(planOfOneGigabyte(), nullptr, withoutStream);
  EXPECT_NE(with.find("50.0 tokens/s, limited by memory"), std::string::npos) << with;
  EXPECT_EQ(without.find("tokens/s"), std::string::npos) << without;
  EXPECT_NE(without.find("1000.00 MB"), std::string::npos) << without;
}

} // namespace
} // namespace izhc::tool
