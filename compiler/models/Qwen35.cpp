// Qwen 3.5, dense: linear attention with the gated delta rule, and every fourth
// layer attention whose heads are normed, turned in part and gated. GGUF files
// store value heads so that neighbours have different key heads, folders don't.
// For text all sections of the positions are equal.

#include "compiler/models/blocks/Decoder.h"
#include "compiler/models/blocks/DecoderFolder.h"
#include "compiler/models/blocks/Recurrent.h"
#include "compiler/models/blocks/Rope.h"

namespace izhc::models {

static constexpr llvm::StringLiteral kGrouped("ssm.grouped");

static mlir::Value build(ModelBuilder &builder, llvm::StringRef architecture, ModelFacts &facts) {
  return decoder(builder, architecture, facts, [&](const Hyper &hyper) {
    DecoderStyle style;
    style.feedForwardNorm = ".post_attention_norm";
    style.attention.headNorms = HeadNorms::Heads;
    style.attention.gated = true;
    style.attention.angles = ropeAngles(builder, hyper);
    DeltaStyle delta = readDeltaStyle(builder, hyper);
    delta.tiled = !builder.unwrap<bool>(
        builder.source().getBoolOr(hyper.prefix + kGrouped.str(), false), false);
    std::vector<bool> recurrent = recurrentLayers(builder, hyper);
    style.mixer = [&builder, hyper, delta, recurrent](int64_t i, const std::string &layer,
                                                      mlir::Value input) {
      return recurrent[i] ? deltaAttention(builder, hyper, layer, delta, input) : mlir::Value();
    };
    return style;
  });
}

static constexpr TensorRule kTensors[] = {
    {"output_norm.weight", "model.norm.weight", Change::PlusOne},
    {"blk.*.attn_norm.weight", "model.layers.*.input_layernorm.weight", Change::PlusOne},
    {"blk.*.post_attention_norm.weight", "model.layers.*.post_attention_layernorm.weight",
     Change::PlusOne},
    {"blk.*.attn_q_norm.weight", "model.layers.*.self_attn.q_norm.weight", Change::PlusOne},
    {"blk.*.attn_k_norm.weight", "model.layers.*.self_attn.k_norm.weight", Change::PlusOne},
    {"blk.*.attn_qkv.weight", "model.layers.*.linear_attn.in_proj_qkv.weight"},
    {"blk.*.attn_gate.weight", "model.layers.*.linear_attn.in_proj_z.weight"},
    {"blk.*.ssm_beta.weight", "model.layers.*.linear_attn.in_proj_b.weight"},
    {"blk.*.ssm_alpha.weight", "model.layers.*.linear_attn.in_proj_a.weight"},
    {"blk.*.ssm_conv1d.weight", "model.layers.*.linear_attn.conv1d.weight"},
    {"blk.*.ssm_a", "model.layers.*.linear_attn.A_log", Change::NegativeExp},
    {"blk.*.ssm_dt.bias", "model.layers.*.linear_attn.dt_bias"},
    {"blk.*.ssm_norm.weight", "model.layers.*.linear_attn.norm.weight"},
    {"blk.*.ssm_out.weight", "model.layers.*.linear_attn.out_proj.weight"},
    // Prediction of further tokens is not compiled.
    {"", "mtp.**"},
};

static void keys(FolderKeys &keys) {
  decoderKeys(keys);
  deltaKeys(keys);
  keys.set(kGrouped, Json::of(true));
}

static constexpr llvm::StringRef kNames[] = {"qwen35"};
static constexpr llvm::StringRef kTypes[] = {"qwen3_5_text", "qwen3_5"};
static const FolderMap kFolder = {kTypes, "qwen35", kTensors, decoderTensors, keys};
extern const ModelSpec kQwen35;
const ModelSpec kQwen35 = {kNames, build, &kFolder};

} // namespace izhc::models
