// Seed-OSS: a decoder with biases of queries, keys and values, whose norm before
// the feed-forward part is called by its place behind attention.

#include "compiler/models/blocks/Decoder.h"
#include "compiler/models/blocks/DecoderFolder.h"
#include "compiler/models/blocks/Rope.h"

namespace izhc::models {

static mlir::Value build(ModelBuilder &builder, llvm::StringRef architecture, ModelFacts &facts) {
  return decoder(builder, architecture, facts, [&](const Hyper &hyper) {
    DecoderStyle style;
    style.attention.angles = ropeAngles(builder, hyper);
    style.feedForwardNorm = ".post_attention_norm";
    return style;
  });
}

static constexpr TensorRule kTensors[] = {
    {"blk.*.post_attention_norm.weight", "model.layers.*.post_attention_layernorm.weight"},
};

static void keys(FolderKeys &keys) {
  keys.assume("attention_bias", Json::of(true));
  keys.assume("attention_out_bias", Json::of(false));
  decoderKeys(keys);
}

static constexpr llvm::StringRef kNames[] = {"seed_oss"};
static const FolderMap kFolder = {kNames, "seed_oss", kTensors, decoderTensors, keys};
extern const ModelSpec kSeedOss;
const ModelSpec kSeedOss = {kNames, build, &kFolder};

} // namespace izhc::models
