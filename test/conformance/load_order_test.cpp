// The check of LoadOrder.h over products of every target: it has nothing to say,
// and it saw loads. Needs no machine of the target; where there is one, the other
// tests fail at its warnings for all that they compile.

#include "compiler/target/Target.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "test/conformance/operands.h"
#include "llvm/ADT/StringExtras.h"

namespace izhc::conformance {
namespace {

// Loops over the blocks of narrow rows are unrolled as a whole.
constexpr int64_t kNarrow = 256, kWide = 768;

std::string kernelOf(const FormatSpec &format, pack::ActType act, int64_t cols) {
  std::string type;
  llvm::raw_string_ostream(type) << act;
  std::string weight =
      "!pack.weight<64 x " + std::to_string(cols) + ", \"" + format.name.str() + "\">";
  std::string out = "memref<?x64xf32>";
  return "plan.kernel @product(%a: " + type + ", %w: " + weight + ", %y: " + out +
         ") {\n  pack.matmul %a weights(%w) into %y : (" + type + ", " + weight + ", " + out +
         ") -> ()\n}\n";
}

// The number that the assembly ends with; -1 where the check complained.
int64_t loadsInOrder(Target &target, const std::string &text) {
  std::string said;
  mlir::ScopedDiagnosticHandler handler(&context(), [&](mlir::Diagnostic &diagnostic) {
    said += diagnostic.str() + "\n";
    return mlir::success();
  });
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context());
  if (!module || failed(target.lowerKernels(*module))) {
    ADD_FAILURE() << said << text;
    return -1;
  }
  auto assembly = target.emitAssembly(*module);
  if (failed(assembly)) {
    ADD_FAILURE() << said;
    return -1;
  }
  int64_t count = -1;
  llvm::StringRef(*assembly).trim().rsplit(' ').second.getAsInteger(10, count);
  return count;
}

// Threads of a GPU make one stream together; its assembler orders loads.
// Formats whose weights are read in different ways.
std::vector<const FormatSpec *> formatsWithStreams() {
  if (everyCase())
    return allFormats().vec();
  std::vector<const FormatSpec *> formats;
  for (llvm::StringRef name : {"f16", "q4_0", "q5_1", "q8_0", "q4_k", "q6_k", "iq2_s"})
    formats.push_back(findFormat(name));
  return formats;
}

std::vector<std::unique_ptr<Target>> targetsWithStreams() {
  auto targets = allTargets();
  llvm::erase_if(targets, [](const auto &target) { return target->arch() == "nvptx64"; });
  return targets;
}

TEST(LoadOrderTest, ProductsOfEveryFormatLoadWeightsInTheOrderOfAddresses) {
  for (const auto &target : targetsWithStreams())
    for (const FormatSpec *format : formatsWithStreams()) {
      std::vector<pack::ActType> acts = {floatActs(kWide)};
      if (format->kind == ElementKind::Quantized)
        acts.push_back(actTypeFor({format}, kWide));
      for (pack::ActType act : acts) {
        SCOPED_TRACE(target->name().str() + " " + format->name.str());
        int64_t seen = loadsInOrder(*target, kernelOf(*format, act, kWide));
        // Scalar code has no streams; float formats load one vector a turn
        // where a tile is one.
        if (target->name() != "reference" && format->kind == ElementKind::Quantized &&
            !format->grid)
          EXPECT_GT(seen, 0);
      }
    }
}

TEST(LoadOrderTest, ProductsOfNarrowRowsReadWeightsOnceMore) {
  for (const auto &target : targetsWithStreams())
    for (llvm::StringRef name : {"q4_0", "q4_k", "q8_0"}) {
      const FormatSpec &format = *findFormat(name);
      SCOPED_TRACE((target->name() + " " + name).str());
      EXPECT_GE(loadsInOrder(*target, kernelOf(format, actTypeFor({&format}, kNarrow), kNarrow)),
                0);
    }
}

} // namespace
} // namespace izhc::conformance
