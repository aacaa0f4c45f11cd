// The variants for NVIDIA GPUs: assembly text (PTX) for each least compute
// capability, which the driver of any later one compiles as well.

#include "compiler/formats/PackedLayout.h"
#include "compiler/target/Emission.h"
#include "targets/cuda/codegen/AttentionSums.h"
#include "targets/cuda/codegen/Kernels.h"
#include "targets/cuda/codegen/Lowering.h"
#include "targets/cuda/codegen/Spans.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/TargetSelect.h"
#include <mutex>

namespace izhc::cuda {

// Where a matrix has so many tiles, several blocks of few warps keep a GPU busy.
static constexpr int64_t kManyTiles = 2048;

// Warps that share a tile: one for each span of its columns.
static int64_t warpsFor(mlir::Value weight) {
  auto type = llvm::cast<pack::WeightType>(weight.getType());
  int64_t tiles = llvm::divideCeil(type.getRows(), PackedLayout::kTileRows);
  return std::clamp<int64_t>(Spans(type.getCols()).count(), 4, tiles >= kManyTiles ? 8 : 16);
}

// Products of many tiles share a block; one head's sums need but a warp.
int64_t threadsOf(mlir::Operation *op) {
  return llvm::TypeSwitch<mlir::Operation *, int64_t>(op)
      .Case([](pack::MatmulHeadsOp) { return 512; })
      .Case([](pack::MergeOp) { return 32; })
      .Case([](pack::QuantizeOp) { return 256; })
      .Case([](pack::AttentionOp) { return kAttentionThreads; })
      .Case<pack::MatmulOp, pack::ExpertGateOp>(
          [](auto product) { return kWarp * warpsFor(product.getWeights().front()); })
      .Case<pack::ExpertSumOp, pack::HeadMatmulOp>(
          [](auto product) { return kWarp * warpsFor(product.getWeight()); })
      .Default([](mlir::Operation *) { return 128; });
}

namespace {

enum Feature : unsigned {
#define IZH_CPU_FEATURE(bit, name, arch) name = bit,
#include "runtime/schema/cpu_features.def"
};

struct Variant {
  llvm::StringRef name, summary, chip, assembly;
  uint32_t rank;
  uint64_t features;
  bool overlaps; // kernels may begin while those before them run
};

// clang-format off
const Variant kVariants[] = {
    {"cuda:sm_80", "NVIDIA GPUs from Ampere on (driver 450 and later)", "sm_80", "+ptx70", 10,
     uint64_t(1) << sm_80, false},
    {"cuda:sm_90", "NVIDIA GPUs from Hopper on (driver 525 and later)", "sm_90", "+ptx80", 20,
     uint64_t(1) << sm_80 | uint64_t(1) << sm_90, true},
};
// clang-format on

class CudaTarget final : public Target {
public:
  explicit CudaTarget(const Variant &variant) : variant(variant) {}

  llvm::StringRef name() const override { return variant.name; }
  llvm::StringRef arch() const override { return "nvptx64"; }
  uint64_t requiredFeatures() const override { return variant.features; }
  uint32_t rank() const override { return variant.rank; }
  bool inDefaultSet() const override { return false; }
  llvm::StringRef summary() const override { return variant.summary; }

  llvm::LogicalResult lowerKernels(mlir::ModuleOp module) override {
    return replaceKernels(module, variant.overlaps);
  }

  llvm::FailureOr<CodeBlob> emit(mlir::ModuleOp module,
                                 llvm::ArrayRef<std::string> order) override {
    auto text = emitAssembly(module);
    if (failed(text))
      return mlir::failure();
    return packCode(module, *text, order);
  }

  llvm::FailureOr<std::string> emitAssembly(mlir::ModuleOp module) override {
    static std::once_flag once;
    std::call_once(once, [] {
      LLVMInitializeNVPTXTargetInfo();
      LLVMInitializeNVPTXTarget();
      LLVMInitializeNVPTXTargetMC();
      LLVMInitializeNVPTXAsmPrinter();
    });
    std::string chip = variant.chip.str();
    return emitText(module, {"nvptx64-nvidia-cuda", chip, variant.assembly.str(), chip, 128,
                             /*unroll=*/true});
  }

private:
  const Variant &variant;
};

} // namespace
} // namespace izhc::cuda

namespace izhc::targets {

void add_cuda(TargetList &list) {
  for (const cuda::Variant &variant : cuda::kVariants)
    list.push_back(std::make_unique<cuda::CudaTarget>(variant));
}

} // namespace izhc::targets
