// Gemma 3: norms before and behind attention and feed-forward part, heads
// normed, gates bent by gelu; five of six layers see a window, and turn their
// queries and keys by another base, which no scaling stretches.

#include "compiler/models/blocks/Decoder.h"
#include "compiler/models/blocks/DecoderFolder.h"
#include "compiler/models/blocks/Rope.h"
#include "compiler/models/blocks/Windows.h"
#include <cmath>

namespace izhc::models {

static constexpr llvm::StringLiteral kScale("attention.scale"), kNearBase("rope.freq_base_swa");
// The published model whose products are scaled by its embedding's share of a
// head, not by the head's size, which no key of its GGUF files tells.
static constexpr int64_t kLayersOfLargest = 62;

static mlir::Value build(ModelBuilder &builder, llvm::StringRef architecture, ModelFacts &facts) {
  return decoder(builder, architecture, facts, [&](const Hyper &hyper) {
    DecoderStyle style;
    int64_t scaled =
        hyper.layers == kLayersOfLargest ? hyper.embedding / hyper.heads : hyper.headDim;
    style.attention.scale = float(
        builder.number(hyper.prefix + kScale.str(), 1 / std::sqrt(double(scaled)), 1e-6, 1e6));
    style.attention.headNorms = HeadNorms::Heads;
    style.attention.angles = ropeAngles(builder, hyper);
    RopeOptions options;
    options.baseKey = kNearBase.data();
    options.scaled = false;
    mlir::Value nearAngles = ropeAngles(builder, hyper, options);
    style.attention.cap = hyper.attentionCap;
    style.windows = style.caps = true;
    style.ofLayer = [nearAngles, window = hyper.window, near = windowLayers(builder, hyper, 6)](
                        int64_t layer, AttentionStyle &attention) {
      if (!near[layer])
        return;
      attention.window = window;
      attention.angles = nearAngles;
    };
    style.gating = Gating::Gelu;
    style.normsBehind = true;
    style.embeddingScale = std::sqrt(float(hyper.embedding));
    return style;
  });
}

static constexpr TensorRule kTensors[] = {
    {"output_norm.weight", "model.norm.weight", Change::PlusOne},
    {"blk.*.attn_norm.weight", "model.layers.*.input_layernorm.weight", Change::PlusOne},
    {"blk.*.post_attention_norm.weight", "model.layers.*.post_attention_layernorm.weight",
     Change::PlusOne},
    {"blk.*.ffn_norm.weight", "model.layers.*.pre_feedforward_layernorm.weight", Change::PlusOne},
    {"blk.*.post_ffw_norm.weight", "model.layers.*.post_feedforward_layernorm.weight",
     Change::PlusOne},
    {"blk.*.attn_q_norm.weight", "model.layers.*.self_attn.q_norm.weight", Change::PlusOne},
    {"blk.*.attn_k_norm.weight", "model.layers.*.self_attn.k_norm.weight", Change::PlusOne},
};

// Folders of models that see images tell of the language model only what is
// not as in the first one.
static void assume(FolderKeys &keys) {
  for (auto [path, value] : {std::pair("head_dim", int64_t(256)),
                             {"num_attention_heads", int64_t(8)},
                             {"num_key_value_heads", int64_t(4)},
                             {"max_position_embeddings", int64_t(131072)}})
    keys.assume(path, Json::of(value));
  keys.assume("rms_norm_eps", Json::of(1e-6));
  keys.assume("rope_theta", Json::of(1e6));
  keys.assume("rope_local_base_freq", Json::of(1e4));
}

static void keys(FolderKeys &keys) {
  assume(keys);
  sizeKeys(keys, "gelu_pytorch_tanh");
  ropeKindKeys(keys);
  ropeKeys(keys, "rope_parameters.full_attention");
  ropeBaseKey(keys, kNearBase, "rope_parameters.sliding_attention", "rope_local_base_freq");
  windowKeys(keys, 4096);
  causalKeys(keys);
  preScaleKey(keys, kScale);
  for (const char *cap : {"attn_logit_softcapping", "final_logit_softcapping"})
    keys.copyNumber(cap, cap);
}

static constexpr llvm::StringRef kNames[] = {"gemma3"};
static constexpr llvm::StringRef kTypes[] = {"gemma3_text", "gemma3"};
static const FolderMap kFolder = {kTypes, "gemma3", kTensors, decoderTensors, keys};
extern const ModelSpec kGemma3;
const ModelSpec kGemma3 = {kNames, build, &kFolder};

} // namespace izhc::models
