// The 64-bit Arm variants: what each requires and its dot unit.

#include "compiler/target/Emission.h"
#include "compiler/target/Target.h"
#include "compiler/target/vector/VectorLowering.h"
#include "targets/arm64/codegen/ByteShifts.h"
#include "targets/arm64/codegen/LowerDot.h"
#include "llvm/Support/TargetSelect.h"
#include <mutex>

namespace izhc::arm64 {

namespace {

enum Feature : unsigned {
#define IZH_CPU_FEATURE(bit, name, arch) name = bit,
#include "runtime/schema/cpu_features.def"
};

struct Variant {
  llvm::StringRef name, summary;
  uint32_t rank;
  uint64_t features;
  llvm::StringRef llvmFeatures, tune;
  DotUnit dots;
  std::initializer_list<int64_t> tokenTiles;
};

constexpr uint64_t kNeon = uint64_t(1) << neon, kDotProd = kNeon | uint64_t(1) << dotprod,
                   kI8mm = kDotProd | uint64_t(1) << i8mm;

// clang-format off
const Variant kVariants[] = {
    {"neon", "any 64-bit Arm processor (Armv8.0)", 10, kNeon, "+neon", "cortex-a72", DotUnit::Neon,
     {4, 2, 1}},
    {"neon-dotprod", "Cortex-A76, Neoverse N1, Apple M1 and later (dot products)", 20, kDotProd,
     "+neon,+dotprod", "neoverse-n1", DotUnit::DotProd, {8, 4, 2, 1}},
    {"neon-i8mm", "Cortex-A710, Neoverse V1, Apple M2 and later (int8 matrix products)", 30, kI8mm,
     "+neon,+dotprod,+i8mm", "neoverse-v1", DotUnit::I8mm, {8, 4, 2, 1}},
};
// clang-format on

class Arm64Target final : public Target {
public:
  explicit Arm64Target(const Variant &variant) : variant(variant) {}

  llvm::StringRef name() const override { return variant.name; }
  llvm::StringRef arch() const override { return "aarch64"; }
  uint64_t requiredFeatures() const override { return variant.features; }
  uint32_t rank() const override { return variant.rank; }
  bool inDefaultSet() const override { return true; }
  llvm::StringRef summary() const override { return variant.summary; }

  llvm::LogicalResult lowerKernels(mlir::ModuleOp module) override {
    VectorMachine machine;
    machine.lanes = 4;
    machine.vectorRegisters = 32;
    machine.floats = {/*fma=*/true, /*convertsHalf=*/true};
    machine.tokenTiles.assign(variant.tokenTiles.begin(), variant.tokenTiles.end());
    if (failed(lowerKernelsToVectors(module, machine)))
      return mlir::failure();
    shiftBytes(module);
    if (failed(lowerDots(module, variant.dots)))
      return mlir::failure();
    mlir::PassManager pm(module.getContext());
    buildLlvmPasses(pm);
    return pm.run(module);
  }

  llvm::FailureOr<CodeBlob> emit(mlir::ModuleOp module,
                                 llvm::ArrayRef<std::string> order) override {
    return emitBlob(module, code(), order);
  }
  llvm::FailureOr<std::string> emitAssembly(mlir::ModuleOp module) override {
    return emitText(module, code());
  }

private:
  MachineCode code() const {
    static std::once_flag once;
    std::call_once(once, [] {
      LLVMInitializeAArch64TargetInfo();
      LLVMInitializeAArch64Target();
      LLVMInitializeAArch64TargetMC();
      LLVMInitializeAArch64AsmPrinter();
    });
    return {"aarch64-unknown-linux-gnu", "generic", variant.llvmFeatures.str(), variant.tune.str(),
            128};
  }

  const Variant &variant;
};

} // namespace
} // namespace izhc::arm64

namespace izhc::targets {

void add_arm64(TargetList &list) {
  for (const arm64::Variant &variant : arm64::kVariants)
    list.push_back(std::make_unique<arm64::Arm64Target>(variant));
}

} // namespace izhc::targets
