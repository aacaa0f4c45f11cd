// Qwen 3 with experts: attention as in the dense model, and in each layer a
// softmax over all experts whose best are used with weights that add up to one.

#include "compiler/models/blocks/Decoder.h"
#include "compiler/models/blocks/DecoderFolder.h"
#include "compiler/models/blocks/Rope.h"

namespace izhc::models {

static mlir::Value build(ModelBuilder &builder, llvm::StringRef architecture, ModelFacts &facts) {
  return decoder(builder, architecture, facts, [&](const Hyper &hyper) {
    DecoderStyle style;
    style.attention.headNorms = HeadNorms::Heads;
    style.attention.angles = ropeAngles(builder, hyper);
    style.routing = Routing();
    return style;
  });
}

static void keys(FolderKeys &keys) {
  keys.assume("norm_topk_prob", Json::of(false));
  keys.assume("use_sliding_window", Json::of(false));
  decoderKeys(keys);
  expertKeys(keys);
}

static constexpr llvm::StringRef kNames[] = {"qwen3moe"};
static constexpr llvm::StringRef kTypes[] = {"qwen3_moe"};
static const FolderMap kFolder = {kTypes, "qwen3moe", expertTensors(), decoderTensors, keys};
extern const ModelSpec kQwen3Moe;
const ModelSpec kQwen3Moe = {kNames, build, &kFolder};

} // namespace izhc::models
