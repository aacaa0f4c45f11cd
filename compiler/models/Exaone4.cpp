// EXAONE 4: norms stand behind attention and feed-forward part, heads are
// normed, and where some layers see a window the others don't turn their queries
// and keys.

#include "compiler/models/blocks/Decoder.h"
#include "compiler/models/blocks/DecoderFolder.h"
#include "compiler/models/blocks/Rope.h"
#include "compiler/models/blocks/Windows.h"

namespace izhc::models {

static mlir::Value build(ModelBuilder &builder, llvm::StringRef architecture, ModelFacts &facts) {
  return decoder(builder, architecture, facts, [&](const Hyper &hyper) {
    DecoderStyle style;
    style.attention.headNorms = HeadNorms::Heads;
    style.attention.angles = ropeAngles(builder, hyper);
    style.normsBefore = false;
    style.normsBehind = true;
    style.windows = true;
    if (hasWindows(builder, hyper))
      style.ofLayer = [window = hyper.window, near = windowLayers(builder, hyper, 4)](
                          int64_t layer, AttentionStyle &attention) {
        attention.window = near[layer] ? window : 0;
        if (!near[layer])
          attention.angles = {};
      };
    return style;
  });
}

static constexpr TensorRule kTensors[] = {
    {"blk.*.post_attention_norm.weight", "model.layers.*.post_attention_layernorm.weight"},
    {"blk.*.post_ffw_norm.weight", "model.layers.*.post_feedforward_layernorm.weight"},
};

static void keys(FolderKeys &keys) {
  sizeKeys(keys);
  ropeKeys(keys);
  windowKeys(keys, 4096, /*optional=*/true);
}

static constexpr llvm::StringRef kNames[] = {"exaone4"};
static const FolderMap kFolder = {kNames, "exaone4", kTensors, decoderTensors, keys};
extern const ModelSpec kExaone4;
const ModelSpec kExaone4 = {kNames, build, &kFolder};

} // namespace izhc::models
