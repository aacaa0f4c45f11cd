// Qwen 1.5 and 2 with experts: attention as in the dense model; the weights of
// the chosen experts are shares of a softmax over all, and a gated part works
// on all rows.

#include "compiler/models/blocks/Decoder.h"
#include "compiler/models/blocks/DecoderFolder.h"
#include "compiler/models/blocks/Rope.h"

namespace izhc::models {

static mlir::Value build(ModelBuilder &builder, llvm::StringRef architecture, ModelFacts &facts) {
  return decoder(builder, architecture, facts, [&](const Hyper &hyper) {
    DecoderStyle style;
    style.attention.angles = ropeAngles(builder, hyper);
    style.routing = Routing();
    style.routing->normalize = false;
    return style;
  });
}

static void keys(FolderKeys &keys) {
  keys.assume("norm_topk_prob", Json::of(false));
  keys.assume("qkv_bias", Json::of(true));
  keys.assume("attention_out_bias", Json::of(false));
  keys.assume("use_sliding_window", Json::of(false));
  decoderKeys(keys);
  expertKeys(keys);
}

static constexpr llvm::StringRef kNames[] = {"qwen2moe"};
static constexpr llvm::StringRef kTypes[] = {"qwen2_moe"};
static const FolderMap kFolder = {kTypes, "qwen2moe", expertTensors(), decoderTensors, keys};
extern const ModelSpec kQwen2Moe;
const ModelSpec kQwen2Moe = {kNames, build, &kFolder};

} // namespace izhc::models
