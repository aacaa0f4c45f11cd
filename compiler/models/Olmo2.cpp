// OLMo 2: norms stand behind attention and feed-forward part, not before, and
// queries and keys are normed over all their heads.

#include "compiler/models/blocks/Decoder.h"
#include "compiler/models/blocks/DecoderFolder.h"
#include "compiler/models/blocks/Rope.h"

namespace izhc::models {

static mlir::Value build(ModelBuilder &builder, llvm::StringRef architecture, ModelFacts &facts) {
  return decoder(builder, architecture, facts, [&](const Hyper &hyper) {
    DecoderStyle style;
    style.attention.headNorms = HeadNorms::Whole;
    style.attention.angles = ropeAngles(builder, hyper);
    style.normsBefore = false;
    style.normsBehind = true;
    return style;
  });
}

static constexpr TensorRule kTensors[] = {
    {"blk.*.post_attention_norm.weight", "model.layers.*.post_attention_layernorm.weight"},
    {"blk.*.post_ffw_norm.weight", "model.layers.*.post_feedforward_layernorm.weight"},
};

static constexpr llvm::StringRef kNames[] = {"olmo2"};
static constexpr llvm::StringRef kTypes[] = {"olmo2"};
static const FolderMap kFolder = {kTypes, "olmo2", kTensors, decoderTensors, decoderKeys};
extern const ModelSpec kOlmo2;
const ModelSpec kOlmo2 = {kNames, build, &kFolder};

} // namespace izhc::models
