// GPT-OSS: experts with biases and limited gates, chosen before the softmax;
// attention with a sink for each head, in every other layer over a window.

#include "compiler/models/blocks/Decoder.h"
#include "compiler/models/blocks/DecoderFolder.h"
#include "compiler/models/blocks/Rope.h"
#include "compiler/models/blocks/RopeDefaults.h"
#include "compiler/models/blocks/Windows.h"

namespace izhc::models {

static constexpr llvm::StringLiteral kAlpha("swiglu_alpha"), kLimit("swiglu_limit");

static mlir::Value build(ModelBuilder &builder, llvm::StringRef architecture, ModelFacts &facts) {
  return decoder(builder, architecture, facts, [&](const Hyper &hyper) {
    DecoderStyle style;
    style.attention.angles = ropeAngles(builder, hyper);
    style.attention.sinks = true;
    style.windows = true;
    style.ofLayer = [window = hyper.window, near = windowLayers(builder, hyper, 2)](
                        int64_t layer, AttentionStyle &attention) {
      attention.window = near[layer] ? window : 0;
    };
    Routing routing;
    routing.score = lm::Score::SoftmaxChosen;
    routing.gating = lm::Gating::LimitedSilu;
    routing.alpha = float(builder.number(hyper.prefix + kAlpha.str(), 1.702, 0, 1e3));
    routing.limit = float(builder.number(hyper.prefix + kLimit.str(), 7, 1e-3, 1e6));
    style.routing = routing;
    if (builder.hasTensor("blk.0.post_attention_norm.weight"))
      style.feedForwardNorm = ".post_attention_norm";
    return style;
  });
}

// Gate and up alternate in their common matrix.
static llvm::Expected<std::vector<int64_t>> everySecond(int64_t first, int64_t count) {
  std::vector<int64_t> indices;
  for (int64_t i = first; i < count; i += 2)
    indices.push_back(i);
  return indices;
}
static llvm::Expected<std::vector<int64_t>> gates(const FolderSource &, int64_t count) {
  return everySecond(0, count);
}
static llvm::Expected<std::vector<int64_t>> ups(const FolderSource &, int64_t count) {
  return everySecond(1, count);
}

static constexpr TensorRule kTensors[] = {
    {"blk.*.post_attention_norm.weight", "model.layers.*.post_attention_layernorm.weight"},
    {"blk.*.attn_sinks.weight", "model.layers.*.self_attn.sinks"},
    {"blk.*.ffn_gate_inp.weight", "model.layers.*.mlp.router.weight"},
    {"blk.*.ffn_gate_inp.bias", "model.layers.*.mlp.router.bias"},
    {"blk.*.ffn_gate_exps.weight", "model.layers.*.mlp.experts.gate_up_proj", Change::Transpose,
     gates},
    {"blk.*.ffn_up_exps.weight", "model.layers.*.mlp.experts.gate_up_proj", Change::Transpose, ups},
    {"blk.*.ffn_down_exps.weight", "model.layers.*.mlp.experts.down_proj", Change::Transpose},
    {"blk.*.ffn_gate_exps.bias", "model.layers.*.mlp.experts.gate_up_proj_bias", Change::None,
     nullptr, gates},
    {"blk.*.ffn_up_exps.bias", "model.layers.*.mlp.experts.gate_up_proj_bias", Change::None,
     nullptr, ups},
    {"blk.*.ffn_down_exps.bias", "model.layers.*.mlp.experts.down_proj_bias"},
};

static void keys(FolderKeys &keys) {
  keys.assume("rope_theta", Json::of(150000.0));
  if (lacksRope(keys)) {
    assumeYarn(keys, 32, 4096);
    keys.assume("rope_parameters.truncate", Json::of(false));
  }
  keys.assume("attention_bias", Json::of(true));
  sizeKeys(keys);
  ropeKeys(keys);
  windowKeys(keys, 128);
  expertKeys(keys);
  // An expert's width goes by another name than elsewhere.
  keys.copyCount("expert_feed_forward_length", "intermediate_size");
  keys.copyNumber(kAlpha, kAlpha);
  keys.copyNumber(kLimit, kLimit);
}

static constexpr llvm::StringRef kNames[] = {"gpt-oss"};
static constexpr llvm::StringRef kTypes[] = {"gpt_oss"};
static const FolderMap kFolder = {kTypes, "gpt-oss", kTensors, decoderTensors, keys};
extern const ModelSpec kGptOss;
const ModelSpec kGptOss = {kNames, build, &kFolder};

} // namespace izhc::models
