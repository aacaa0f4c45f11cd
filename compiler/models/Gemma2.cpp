// Gemma 2: norms before and behind attention and feed-forward part, gates bent
// by gelu, capped attention and logits, and windows in every other layer.

#include "compiler/models/blocks/Decoder.h"
#include "compiler/models/blocks/DecoderFolder.h"
#include "compiler/models/blocks/Rope.h"
#include "compiler/models/blocks/Windows.h"
#include <cmath>

namespace izhc::models {

static constexpr llvm::StringLiteral kAttentionCap("attn_logit_softcapping"),
    kLogitCap("final_logit_softcapping"), kWindow("attention.sliding_window"),
    kScale("attention.scale");
// Of the first files and folders, which don't tell these numbers.
static constexpr float kFirstAttentionCap = 50, kFirstLogitCap = 30;
static constexpr int64_t kFirstWindow = 4096;
// The published model whose products are scaled by its embedding's share of a
// head, not by the head's size, which no key of its GGUF files tells.
static constexpr int64_t kLayersOfLargest = 46;

static mlir::Value build(ModelBuilder &builder, llvm::StringRef architecture, ModelFacts &facts) {
  return decoder(builder, architecture, facts, [&](Hyper &hyper) {
    auto isMissing = [&](llvm::StringRef key) {
      return !builder.source().hasKey(hyper.prefix + key.str());
    };
    if (isMissing(kAttentionCap))
      hyper.attentionCap = kFirstAttentionCap;
    if (isMissing(kLogitCap))
      hyper.logitCap = kFirstLogitCap;
    if (isMissing(kWindow) && kFirstWindow < hyper.context)
      hyper.window = kFirstWindow;
    DecoderStyle style;
    int64_t scaled =
        hyper.layers == kLayersOfLargest ? hyper.embedding / hyper.heads : hyper.headDim;
    style.attention.scale = float(
        builder.number(hyper.prefix + kScale.str(), 1 / std::sqrt(double(scaled)), 1e-6, 1e6));
    style.attention.angles = ropeAngles(builder, hyper);
    style.attention.cap = hyper.attentionCap;
    style.caps = style.windows = true;
    style.ofLayer = [window = hyper.window, near = windowLayers(builder, hyper, 2)](
                        int64_t layer, AttentionStyle &attention) {
      attention.window = near[layer] ? window : 0;
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
};

static void keys(FolderKeys &keys) {
  keys.assume("head_dim", Json::of(int64_t(256)));
  sizeKeys(keys, "gelu_pytorch_tanh");
  ropeKeys(keys);
  windowKeys(keys, kFirstWindow);
  causalKeys(keys);
  preScaleKey(keys, kScale);
  // Null is no cap, absence the first model's.
  for (auto [key, first] :
       {std::pair(kAttentionCap, kFirstAttentionCap), {kLogitCap, kFirstLogitCap}}) {
    double otherwise = keys.names(key) ? 0 : double(first);
    keys.set(key, Json::of(keys.number(key).value_or(otherwise)), key);
  }
}

static constexpr llvm::StringRef kNames[] = {"gemma2"};
static constexpr llvm::StringRef kTypes[] = {"gemma2"};
static const FolderMap kFolder = {kTypes, "gemma2", kTensors, decoderTensors, keys};
extern const ModelSpec kGemma2;
const ModelSpec kGemma2 = {kNames, build, &kFolder};

} // namespace izhc::models
