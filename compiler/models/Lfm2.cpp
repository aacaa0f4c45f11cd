// LFM 2: most layers are short convolutions between gates, a few are attention
// with normed heads: those that have key heads.

#include "compiler/models/blocks/Decoder.h"
#include "compiler/models/blocks/DecoderFolder.h"
#include "compiler/models/blocks/Recurrent.h"
#include "compiler/models/blocks/Rope.h"
#include "compiler/support/Numbers.h"

namespace izhc::models {

static mlir::Value build(ModelBuilder &builder, llvm::StringRef architecture, ModelFacts &facts) {
  return decoder(builder, architecture, facts, [&](const Hyper &hyper) {
    DecoderStyle style;
    style.outputNorm = "token_embd_norm";
    style.attention.headNorms = HeadNorms::Heads;
    style.attention.angles = ropeAngles(builder, hyper);
    std::vector<int64_t> keyHeads =
        builder.layerNumbers(hyper.prefix + "attention.head_count_kv", hyper.layers, hyper.kvHeads);
    style.mixer = [&builder, hyper, keyHeads](int64_t i, const std::string &layer,
                                              mlir::Value input) {
      return keyHeads[i] == 0 ? gatedConvolution(builder, hyper, layer, input) : mlir::Value();
    };
    return style;
  });
}

static constexpr TensorRule kTensors[] = {
    {"token_embd_norm.weight", "model.embedding_norm.weight"},
    {"blk.*.attn_norm.weight", "model.layers.*.operator_norm.weight"},
    {"blk.*.ffn_norm.weight", "model.layers.*.ffn_norm.weight"},
    {"blk.*.shortconv.conv.weight", "model.layers.*.conv.conv.weight"},
    {"blk.*.shortconv.in_proj.weight", "model.layers.*.conv.in_proj.weight"},
    {"blk.*.shortconv.out_proj.weight", "model.layers.*.conv.out_proj.weight"},
    {"blk.*.attn_q_norm.weight", "model.layers.*.self_attn.q_layernorm.weight"},
    {"blk.*.attn_k_norm.weight", "model.layers.*.self_attn.k_layernorm.weight"},
    {"blk.*.attn_output.weight", "model.layers.*.self_attn.out_proj.weight"},
    {"blk.*.ffn_gate.weight", "model.layers.*.feed_forward.w1.weight"},
    {"blk.*.ffn_up.weight", "model.layers.*.feed_forward.w3.weight"},
    {"blk.*.ffn_down.weight", "model.layers.*.feed_forward.w2.weight"},
};

// The feed-forward size is two thirds of the one named, rounded up, where the
// folder says that it is adjusted.
static void feedForward(FolderKeys &keys) {
  int64_t size = keys.count("block_ff_dim|intermediate_size").value_or(0);
  if (keys.flag("block_auto_adjust_ff_dim").value_or(true)) {
    double multiplier = keys.number("block_ffn_dim_multiplier", 0, 1e3).value_or(1);
    int64_t multiple = keys.count("block_multiple_of", 1).value_or(256);
    size = int64_t(multiplier * double(2 * size / 3));
    size = (size + multiple - 1) / multiple * multiple;
  }
  keys.set("feed_forward_length", Json::of(size), "intermediate_size");
}

// Which layers are attention: by their kinds, or by the numbers of those.
static std::vector<bool> attentionLayers(FolderKeys &keys) {
  std::vector<bool> layers = keys.equals("layer_types", "full_attention", "conv");
  if (!layers.empty())
    return layers;
  layers.resize(std::min<int64_t>(keys.count("num_hidden_layers").value_or(0), 1 << 12));
  if (!keys.find("full_attn_idxs"))
    layers.flip();
  for (int64_t layer : keys.counts("full_attn_idxs"))
    if (layer < int64_t(layers.size()))
      layers[layer] = true;
  return layers;
}

// Old folders call it 'theta', or give it by both names.
static void assumeBase(FolderKeys &keys) {
  auto old = keys.number("theta"), base = keys.number("rope_theta");
  if (old && base && *old != *base && !keys.find("rope_parameters.rope_theta"))
    keys.refuse("theta", "is " + shortText(*old) + ", but 'rope_theta' is " + shortText(*base) +
                             ": leave the one that holds");
  keys.assume("rope_theta", Json::of(old.value_or(1e6)));
}

// Old folders call it 'tie_embedding'.
static void tieKey(FolderKeys &keys) {
  constexpr llvm::StringLiteral oldName("tie_embedding"), name("tie_word_embeddings");
  auto old = keys.flag(oldName), tied = keys.flag(name);
  if (!old)
    return;
  if (tied && *tied != *old)
    keys.refuse(oldName, "contradicts 'tie_word_embeddings': leave the one that holds");
  if (*old)
    keys.assume(name, Json::of(true));
  else
    keys.expect(oldName, "token_embd.weight", "output.weight", true);
}

static void keys(FolderKeys &keys) {
  assumeBase(keys);
  tieKey(keys);
  sizeKeys(keys);
  ropeKeys(keys);
  feedForward(keys);
  keys.copyCount("shortconv.l_cache", "conv_L_cache");
  if (keys.flag("conv_bias").value_or(false))
    keys.refuse("conv_bias", "is true, but convolutions can be compiled without biases only");
  int64_t heads = keys.count("num_key_value_heads").value_or(8);
  std::vector<int64_t> keyHeads;
  for (bool isAttention : attentionLayers(keys))
    keyHeads.push_back(isAttention ? heads : 0);
  if (!keyHeads.empty())
    keys.set("attention.head_count_kv", keyHeads, "layer_types");
}

static constexpr llvm::StringRef kNames[] = {"lfm2"};
static const FolderMap kFolder = {kNames, "lfm2", kTensors, decoderTensors, keys};
extern const ModelSpec kLfm2;
const ModelSpec kLfm2 = {kNames, build, &kFolder};

} // namespace izhc::models
