// GLM 4.5 and later with experts: the first layers are dense; in the others
// sigmoids rate the experts, a bias takes part in the ranks only, and one more
// expert works on all rows. Heads turn in part. Larger models norm queries and
// keys.

#include "compiler/models/blocks/Decoder.h"
#include "compiler/models/blocks/DecoderFolder.h"
#include "compiler/models/blocks/Rope.h"

namespace izhc::models {

static mlir::Value build(ModelBuilder &builder, llvm::StringRef architecture, ModelFacts &facts) {
  return decoder(builder, architecture, facts, [&](const Hyper &hyper) {
    DecoderStyle style;
    if (builder.hasTensor("blk.0.attn_q_norm.weight"))
      style.attention.headNorms = HeadNorms::Heads;
    style.attention.angles = ropeAngles(builder, hyper);
    style.routing = Routing();
    style.routing->score = lm::Score::Sigmoid;
    // GGUF files call the norm before the feed-forward part after what it follows.
    if (builder.hasTensor("blk.0.post_attention_norm.weight"))
      style.feedForwardNorm = ".post_attention_norm";
    return style;
  });
}

static void keys(FolderKeys &keys) {
  keys.assume("partial_rotary_factor", Json::of(0.5));
  keys.assume("attention_out_bias", Json::of(false));
  decoderKeys(keys);
  expertKeys(keys);
  if (auto normed = keys.flag("use_qk_norm"))
    for (const char *norm : {"blk.*.attn_q_norm.weight", "blk.*.attn_k_norm.weight"})
      keys.expect("use_qk_norm", "blk.*.attn_q.weight", norm, *normed);
}

static constexpr TensorRule kTensors[] = {
    {"blk.*.post_attention_norm.weight", "model.layers.*.post_attention_layernorm.weight"},
};
static constexpr llvm::StringRef kNames[] = {"glm4moe"};
static constexpr llvm::StringRef kTypes[] = {"glm4_moe"};
static const FolderMap kFolder = {kTypes, "glm4moe", kTensors, mixtureTensors, keys};
extern const ModelSpec kGlm4Moe;
const ModelSpec kGlm4Moe = {kNames, build, &kFolder};

} // namespace izhc::models
