// The machine code of a kernel doesn't depend on what was compiled before it in
// the same process (lld resets options of LLVM that code generation reads).

#include "compiler/target/Target.h"
#include "mlir/Parser/Parser.h"
#include "test/conformance/harness.h"

#include <gtest/gtest.h>

namespace izhc::conformance {
namespace {

constexpr const char *kText = R"(
plan.kernel @product(%a: !pack.act<512 x block256, sums false, corr32 [], corr16 [4]>, %w: !pack.weight<64 x 512, "q3_k">, %y: memref<?x64xf32>) {
  pack.matmul %a weights(%w) into %y : (!pack.act<512 x block256, sums false, corr32 [], corr16 [4]>, !pack.weight<64 x 512, "q3_k">, memref<?x64xf32>) -> ()
})";

std::vector<uint8_t> codeOf(Target &target) {
  auto module = mlir::parseSourceString<mlir::ModuleOp>(kText, &context());
  if (!module || failed(target.lowerKernels(*module)))
    return {};
  auto blob = target.emit(*module, {std::string("product")});
  return succeeded(blob) ? blob->bytes : std::vector<uint8_t>();
}

TEST(EmissionTest, TheSameKernelGivesTheSameCodeEveryTime) {
  for (const auto &target : allTargets()) {
    SCOPED_TRACE(target->name().str());
    std::vector<uint8_t> first = codeOf(*target);
    ASSERT_FALSE(first.empty());
    EXPECT_EQ(first, codeOf(*target));
  }
}

} // namespace
} // namespace izhc::conformance
