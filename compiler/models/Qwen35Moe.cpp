// Qwen 3.5 with experts: layers as in the dense model, and in each a softmax over
// all experts beside a shared one with a gate. Folders hold the gates and ups of
// all experts in one tensor.

#include "compiler/models/blocks/DecoderFolder.h"
#include "compiler/models/blocks/Recurrent.h"
#include <numeric>

namespace izhc::models {

static mlir::Value build(ModelBuilder &builder, llvm::StringRef architecture, ModelFacts &facts) {
  return decoder(builder, architecture, facts, [&](const Hyper &hyper) {
    DecoderStyle style = deltaDecoder(builder, hyper, /*tiled=*/true);
    style.routing = Routing();
    return style;
  });
}

// The first half of an expert's rows are its gate's, the others are its up's.
static std::vector<int64_t> range(int64_t first, int64_t count) {
  std::vector<int64_t> indices(count);
  std::iota(indices.begin(), indices.end(), first);
  return indices;
}
static llvm::Expected<std::vector<int64_t>> gates(const FolderSource &, int64_t count) {
  return range(0, count / 2);
}
static llvm::Expected<std::vector<int64_t>> ups(const FolderSource &, int64_t count) {
  return range(count / 2, count - count / 2);
}

static llvm::ArrayRef<TensorRule> others() {
  static const std::vector<TensorRule> rules = [] {
    std::vector<TensorRule> all = {
        {"blk.*.ffn_gate_exps.weight", "model.layers.*.mlp.experts.gate_up_proj", Change::None,
         gates},
        {"blk.*.ffn_up_exps.weight", "model.layers.*.mlp.experts.gate_up_proj", Change::None, ups},
        {"blk.*.ffn_down_exps.weight", "model.layers.*.mlp.experts.down_proj"},
    };
    llvm::append_range(all, mixtureTensors());
    return all;
  }();
  return rules;
}

static void keys(FolderKeys &keys) {
  deltaKeys(keys);
  ropeSectionKeys(keys);
  expertKeys(keys);
}

static constexpr llvm::StringRef kNames[] = {"qwen35moe"};
static constexpr llvm::StringRef kTypes[] = {"qwen3_5_moe_text", "qwen3_5_moe"};
static const FolderMap kFolder = {kTypes, "qwen35moe", tiledDeltaTensors(), others, keys};
extern const ModelSpec kQwen35Moe;
const ModelSpec kQwen35Moe = {kNames, build, &kFolder};

} // namespace izhc::models
