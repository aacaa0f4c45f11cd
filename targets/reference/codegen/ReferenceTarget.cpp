// The target `reference`: scalar code for any machine of its architecture. It
// is the oracle of the tests and the variant of last resort.

#include "compiler/target/Emission.h"
#include "targets/reference/codegen/Lowering.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/TargetSelect.h"

namespace izhc {

namespace {

class ReferenceTarget final : public Target {
public:
  llvm::StringRef name() const override { return "reference"; }
  llvm::StringRef arch() const override { return "x86_64"; }
  uint64_t requiredFeatures() const override { return 0; }
  uint32_t rank() const override { return 0; }
  bool inDefaultSet() const override { return true; }
  llvm::StringRef summary() const override { return "scalar code, for comparison only"; }

  llvm::LogicalResult lowerKernels(mlir::ModuleOp module) override {
    auto emit = [](KernelFrameBase &frame, mlir::Operation *op) {
      return llvm::TypeSwitch<mlir::Operation *, llvm::LogicalResult>(op)
          .Case([&](pack::EmbedOp op) { return reference::emitEmbed(frame, op); })
          .Case([&](pack::RopeTableOp op) { return reference::emitRopeTable(frame, op); })
          .Case([&](pack::HeadMatmulOp op) { return reference::emitHeadMatmul(frame, op); })
          .Case([&](pack::JoinOp op) { return reference::emitJoin(frame, op); })
          .Case([&](pack::ScaleRowsOp op) { return reference::emitScaleRows(frame, op); })
          .Case([&](pack::RouteOp op) { return reference::emitRoute(frame, op); })
          .Case([&](pack::ExpertGateOp op) { return reference::emitExpertGate(frame, op); })
          .Case([&](pack::ExpertSumOp op) { return reference::emitExpertSum(frame, op); })
          .Case([&](pack::QuantizeOp op) { return reference::emitQuantize(frame, op); })
          .Case([&](pack::MatmulOp op) { return reference::emitMatmul(frame, op); })
          .Case([&](pack::MatmulHeadsOp op) { return reference::emitMatmulHeads(frame, op); })
          .Case([&](pack::AttentionOp op) { return reference::emitAttention(frame, op); })
          .Case([&](pack::MapOp op) { return reference::emitMap(frame, op); })
          .Case([&](pack::NormOp op) { return reference::emitNorm(frame, op); })
          .Case([&](pack::RopeOp op) { return reference::emitRope(frame, op); })
          .Case([&](pack::HadamardOp op) { return reference::emitHadamard(frame, op); })
          .Case([&](pack::AppendOp op) { return reference::emitAppend(frame, op); })
          .Case([&](pack::MergeOp op) { return reference::emitMerge(frame, op); })
          .Case([&](pack::ShortConvOp op) { return reference::emitShortConv(frame, op); })
          .Case([&](pack::DeltaRuleOp op) { return reference::emitDeltaRule(frame, op); })
          .Default([](mlir::Operation *op) {
            return op->emitError("has no scalar form; the target 'reference' can't compile it");
          });
    };
    if (mlir::failed(replaceKernels(module, FloatAbilities{}, emit)))
      return llvm::failure();
    mlir::PassManager passes(module.getContext());
    buildLlvmPasses(passes);
    return passes.run(module);
  }

  llvm::FailureOr<CodeBlob> emit(mlir::ModuleOp module,
                                 llvm::ArrayRef<std::string> order) override {
    return emitBlob(module, machine(), order);
  }

  llvm::FailureOr<std::string> emitAssembly(mlir::ModuleOp module) override {
    return emitText(module, machine());
  }

private:
  static MachineCode machine() {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    return {"x86_64-unknown-linux-gnu", "x86-64", "", "generic", 128};
  }
};

} // namespace

namespace targets {

void add_reference(TargetList &list) { list.push_back(std::make_unique<ReferenceTarget>()); }

} // namespace targets
} // namespace izhc
