// The x86-64 variants: what each requires, its vectors and its dot unit.

#include "compiler/target/Emission.h"
#include "compiler/target/Target.h"
#include "compiler/target/vector/VectorLowering.h"
#include "targets/x86/codegen/Amx.h"
#include "targets/x86/codegen/LowerDot.h"
#include "llvm/Support/TargetSelect.h"
#include <mutex>

namespace izhc::x86 {

namespace {

enum Feature : unsigned {
#define IZH_CPU_FEATURE(bit, name, arch) name = bit,
#include "runtime/schema/cpu_features.def"
};

constexpr uint64_t bits() { return 0; }
template <typename... Rest> constexpr uint64_t bits(Feature first, Rest... rest) {
  return uint64_t(1) << first | bits(rest...);
}

struct Variant {
  llvm::StringRef name, summary;
  uint32_t rank;
  uint64_t features;
  llvm::StringRef llvmFeatures, tune;
  DotUnit dots;
  int64_t lanes;
  bool modern; // has FMA and F16C
  std::initializer_list<int64_t> tokenTiles;
  int64_t prefetchRows, nearRows, nearBytes;
};

constexpr uint64_t kAvx2 = bits(sse3, ssse3, sse41, sse42, popcnt, avx, avx2, fma, f16c, bmi2);
constexpr uint64_t kAvx512 = kAvx2 | bits(avx512f, avx512bw, avx512dq, avx512vl, avx512vnni);

// Fetching ahead. Where one row of q4_0 reads memory on one thread (2026-11):
// Zen 3 at 19 GB/s of 18.6 with fetches from 2304 bytes ahead and 14.5 without;
// Zen 4 at full speed without and a third less with fetches from afar; Emerald
// Rapids at 10 of 15.6 without and 14 with those from 8 KB ahead, 95 % of that
// from 2304. They go to all levels of cache: from the second one on, weights
// that lie in the last one are read 5 % slower; and for one use (prefetchnta),
// as Zen 3 was measured with, Emerald Rapids reaches half of its speed, and a
// third where the weights lie in its last-level cache.
// clang-format off
const Variant kVariants[] = {
    {"x86-64", "any 64-bit x86 processor (SSE2)", 10, 0, "", "generic", DotUnit::Sse2, 4, false, {2, 1}, 0, 0, 0},
    {"avx2", "Haswell, Zen and later (AVX2, FMA, F16C)", 20, kAvx2, "+avx2,+fma,+f16c,+bmi2,+popcnt",
     "haswell", DotUnit::Avx2, 8, true, {4, 2, 1}, 1, 4, 2304},
    {"avxvnni", "Alder Lake, Zen 5 and later (AVX-VNNI)", 30, kAvx2 | bits(avxvnni),
     "+avx2,+fma,+f16c,+bmi2,+popcnt,+avxvnni", "alderlake", DotUnit::Vnni, 8, true, {4, 2, 1}, 1, 4, 8192},
    {"avx512vnni", "Ice Lake and later (AVX-512 VNNI)", 40, kAvx512,
     "+avx2,+fma,+f16c,+bmi2,+popcnt,+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512vnni", "znver4",
     DotUnit::Vnni, 16, true, {12, 8, 6, 4, 3, 2, 1}, 1, 4, 8192},
    {"avx512bf16", "Zen 4 and later (AVX-512 VNNI and BF16)", 45,
     kAvx512 | bits(avx512bf16),
     "+avx2,+fma,+f16c,+bmi2,+popcnt,+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512vnni,+avx512bf16",
     "znver4", DotUnit::Vnni, 16, true, {12, 8, 6, 4, 3, 2, 1}, 4, 0, 0},
    // Dots of bfloat16 are half as fast there as float32, sums of float16 twice
    // as fast (Emerald Rapids, 2026-11).
    {"avx512fp16", "Sapphire Rapids and later (AVX-512 VNNI and FP16)", 46,
     kAvx512 | bits(avx512fp16),
     "+avx2,+fma,+f16c,+bmi2,+popcnt,+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512vnni,+avx512fp16",
     "sapphirerapids", DotUnit::Vnni, 16, true, {12, 8, 6, 4, 3, 2, 1}, 1, 4, 8192},
    {"amx", "Sapphire Rapids and later (AMX with 8-bit integers)", 50,
     kAvx512 | bits(avx512fp16, amxtile, amxint8),
     "+avx2,+fma,+f16c,+bmi2,+popcnt,+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512vnni,+avx512fp16,"
     "+amx-tile,+amx-int8",
     "sapphirerapids", DotUnit::Vnni, 16, true, {12, 8, 6, 4, 3, 2, 1}, 1, 4, 8192},
};
// clang-format on

class X86Target final : public Target {
public:
  explicit X86Target(const Variant &variant) : variant(variant) {}

  llvm::StringRef name() const override { return variant.name; }
  llvm::StringRef arch() const override { return "x86_64"; }
  uint64_t requiredFeatures() const override { return variant.features; }
  uint32_t rank() const override { return variant.rank; }
  bool inDefaultSet() const override { return true; }
  llvm::StringRef summary() const override { return variant.summary; }

  llvm::LogicalResult lowerKernels(mlir::ModuleOp module) override {
    VectorMachine machine;
    machine.lanes = variant.lanes;
    machine.floats = {variant.modern, variant.modern};
    machine.vectorRegisters = variant.lanes == 16 ? 32 : 16;
    if (variant.features & bits(avx512fp16))
      machine.pairs = PairNumber::Float16;
    else if (variant.features & bits(avx512bf16))
      machine.pairs = PairNumber::BFloat16;
    if (variant.features & bits(amxint8))
      machine.matrix = &amxUnit();
    machine.decodesPanels = variant.lanes >= 8;
    machine.unsignedDots = variant.dots == DotUnit::Vnni;
    machine.shufflesBytes = variant.dots != DotUnit::Sse2;
    machine.prefetchRows = variant.prefetchRows;
    machine.nearRows = variant.nearRows;
    machine.nearBytes = variant.nearBytes;
    machine.tokenTiles.assign(variant.tokenTiles.begin(), variant.tokenTiles.end());
    if (failed(lowerKernelsToVectors(module, machine)))
      return mlir::failure();
    lowerDots(module, variant.dots);
    lowerPairDots(module);
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
      LLVMInitializeX86TargetInfo();
      LLVMInitializeX86Target();
      LLVMInitializeX86TargetMC();
      LLVMInitializeX86AsmPrinter();
    });
    return {"x86_64-unknown-linux-gnu", "x86-64", variant.llvmFeatures.str(), variant.tune.str(),
            unsigned(variant.lanes * 32)};
  }

  const Variant &variant;
};

} // namespace
} // namespace izhc::x86

namespace izhc::targets {

void add_x86(TargetList &list) {
  for (const x86::Variant &variant : x86::kVariants)
    list.push_back(std::make_unique<x86::X86Target>(variant));
}

} // namespace izhc::targets
