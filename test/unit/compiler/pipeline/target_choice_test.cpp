// What --target chooses, on invented machines.

#include "compiler/pipeline/TargetChoice.h"

#include <gtest/gtest.h>

using namespace izhc;

namespace {

class FakeTarget : public Target {
public:
  FakeTarget(llvm::StringRef name, uint64_t features, uint32_t rank, bool inSet)
      : text(name), features(features), order(rank), inSet(inSet) {}
  llvm::StringRef name() const override { return text; }
  llvm::StringRef arch() const override { return "toy"; }
  uint64_t requiredFeatures() const override { return features; }
  uint32_t rank() const override { return order; }
  bool inDefaultSet() const override { return inSet; }
  llvm::StringRef summary() const override { return ""; }
  llvm::LogicalResult lowerKernels(mlir::ModuleOp) override { return mlir::failure(); }
  llvm::FailureOr<CodeBlob> emit(mlir::ModuleOp, llvm::ArrayRef<std::string>) override {
    return mlir::failure();
  }
  llvm::FailureOr<std::string> emitAssembly(mlir::ModuleOp) override { return mlir::failure(); }

private:
  llvm::StringRef text;
  uint64_t features;
  uint32_t order;
  bool inSet;
};

TargetList targets() {
  TargetList list;
  list.push_back(std::make_unique<FakeTarget>("plain", 0, 1, true));
  list.push_back(std::make_unique<FakeTarget>("wide", 3, 3, true));
  list.push_back(std::make_unique<FakeTarget>("odd", 4, 2, false));
  list.push_back(std::make_unique<FakeTarget>("chip:a", 8, 1, false));
  list.push_back(std::make_unique<FakeTarget>("chip:b", 8, 2, false));
  return list;
}

// The names chosen, or the sentence of the error.
std::string choose(llvm::StringRef spec, uint64_t features = 0, llvm::StringRef arch = "toy") {
  auto chosen = chooseTargets(targets(), spec, {arch, features});
  if (!chosen)
    return llvm::toString(chosen.takeError());
  std::string names;
  for (auto &target : *chosen)
    names += target->name().str() + " ";
  return names;
}

TEST(TargetChoiceTest, KeepsTheOrderOfTheTableAndDropsDoubles) {
  EXPECT_EQ(choose("wide,plain, wide"), "plain wide ");
}

TEST(TargetChoiceTest, TheNameBeforeAColonStandsForAFamily) {
  EXPECT_EQ(choose("chip"), "chip:a chip:b ");
  EXPECT_EQ(choose("chip:b"), "chip:b ");
  EXPECT_NE(choose("chip:").find("no target"), std::string::npos);
}

TEST(TargetChoiceTest, DefaultIsThePortableSet) {
  EXPECT_EQ(choose("default"), "plain wide ");
  EXPECT_EQ(choose("default,odd"), "plain wide odd ");
}

TEST(TargetChoiceTest, NativeIsTheBestThatTheMachineRuns) {
  EXPECT_EQ(choose("native", 0), "plain ");
  EXPECT_EQ(choose("native", 1), "plain ");
  EXPECT_EQ(choose("native", 4), "odd ");
  EXPECT_EQ(choose("native", 7), "wide ");
}

TEST(TargetChoiceTest, NativeFailsOnAForeignMachine) {
  EXPECT_NE(choose("native", 7, "other").find("no code generator for this machine"),
            std::string::npos);
}

TEST(TargetChoiceTest, NamesTheKnownTargetsWhenOneIsUnknown) {
  std::string message = choose("plain,vax");
  EXPECT_NE(message.find("'vax'"), std::string::npos) << message;
  EXPECT_NE(message.find("plain, wide, odd"), std::string::npos) << message;
}

} // namespace
