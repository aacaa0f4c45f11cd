// From `plan` ops to the structures of an artifact.

#include "compiler/emit/ReadPlan.h"
#include "dialects/plan/Plan.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace izhc;

namespace {

class ReadPlanTest : public testing::Test {
protected:
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::string messages;

  llvm::FailureOr<emit::Plan> read(llvm::StringRef text) {
    context.loadDialect<plan::PlanDialect>();
    mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
      messages += diagnostic.str();
      return mlir::success();
    });
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    if (!module)
      return mlir::failure();
    return emit::readPlan(*module);
  }
};

constexpr const char *kMemory =
    "plan.memory arena 4096 weights 2048 constants 128 logits 64 vocabulary 4 tokens 128 "
    "outputs 16 tile 8 page 64\n";

TEST_F(ReadPlanTest, ReadsEveryOp) {
  auto plan = read(std::string(kMemory) + R"(
    plan.weight "w" format "q4_1" rows 16 cols 64 at 64 size 768
    plan.constant "norm" count 16 at 0 size 64
    plan.constant "freq" count 2 at 64 size 64 values [1.0, 0.5]
    plan.state "cache.0" page_bytes 4096
    plan.state "near.1" page_bytes 8192 {window = 128}
    plan.kernel @k(%a: memref<?xi32>, %b: memref<?x16xf32>) {}
    plan.kernel @l(%a: memref<?xi32>) {}
    plan.dispatch @l spaces [4] offsets [2] sizes [0] units 3 per tokens grain 2
    plan.dispatch @k spaces [1, 0] offsets [64, 128] sizes [768, 256] units 1 per fixed grain 1
  )");
  ASSERT_TRUE(mlir::succeeded(plan)) << messages;
  EXPECT_EQ(plan->arenaBytes, 4096u);
  EXPECT_EQ(plan->weightsBytes, 2048u);
  EXPECT_EQ(plan->constantsBytes, 128u);
  EXPECT_EQ(plan->logitsOffset, 64u);
  EXPECT_EQ(plan->maxOutputs, 16u);
  EXPECT_EQ(plan->kernels, (std::vector<std::string>{"k", "l"}));
  ASSERT_EQ(plan->weights.size(), 1u);
  EXPECT_EQ(plan->weights[0].format->name, "q4_1");
  EXPECT_EQ(plan->weights[0].offset, 64u);
  ASSERT_EQ(plan->constants.size(), 2u);
  EXPECT_TRUE(plan->constants[0].values.empty());
  EXPECT_EQ(plan->constants[1].values, (std::vector<float>{1, 0.5}));
  EXPECT_EQ(plan->statePageBytes, (std::vector<uint64_t>{4096, 8192}));
  EXPECT_EQ(plan->stateWindows, (std::map<size_t, uint32_t>{{1, 128}}));
  ASSERT_EQ(plan->dispatches.size(), 2u);
  EXPECT_EQ(plan->dispatches[0].kernel, 1u);
  EXPECT_EQ(plan->dispatches[0].extent, emit::Extent::Tokens);
  EXPECT_EQ(plan->dispatches[0].grain, 2u);
  EXPECT_EQ(plan->dispatches[1].bindings[1].space, emit::Space::Arena);
  EXPECT_EQ(plan->dispatches[1].bindings[1].size, 256u);
}

TEST_F(ReadPlanTest, RefusesADispatchWithoutItsKernel) {
  EXPECT_TRUE(mlir::failed(read(std::string(kMemory) + R"(
    plan.dispatch @gone spaces [] offsets [] sizes [] units 1 per fixed grain 1
  )")));
  EXPECT_NE(messages.find("gone"), std::string::npos) << messages;
}

TEST_F(ReadPlanTest, RefusesAnUnknownFormat) {
  EXPECT_TRUE(mlir::failed(read(std::string(kMemory) + R"(
    plan.weight "w" format "zz" rows 16 cols 64 at 0 size 768
  )")));
  EXPECT_NE(messages.find("zz"), std::string::npos) << messages;
}

TEST_F(ReadPlanTest, RefusesAWindowOutOfRange) {
  for (const char *state : {"{window = -1}", "{window = 1073741825}", "per_sequence {window = 9}"})
    EXPECT_TRUE(
        mlir::failed(read(std::string(kMemory) + "plan.state \"s\" page_bytes 64 " + state)))
        << state;
  EXPECT_NE(messages.find("has a window of"), std::string::npos) << messages;
}

TEST_F(ReadPlanTest, RefusesAModuleThatWasNotPlanned) {
  EXPECT_TRUE(mlir::failed(read("module {}")));
  EXPECT_NE(messages.find("plan.memory"), std::string::npos) << messages;
}

} // namespace
