// Gemma 4: layers with a window and layers that see all tokens differ in the
// size and number of their heads and in how these turn; the last layers read the
// caches of earlier ones; and each layer may add something that depends on the
// token itself, from a table of its own.

#include "compiler/models/blocks/Decoder.h"
#include "compiler/models/blocks/DecoderFolder.h"
#include "compiler/models/blocks/Rope.h"
#include "compiler/models/blocks/Windows.h"
#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>

namespace izhc::models {

using mlir::Value;

namespace {

constexpr llvm::StringLiteral kNearDim("attention.key_length_swa"), kNearBase("rope.freq_base_swa"),
    kNearRotary("rope.dimension_count_swa"), kKeyHeads("attention.head_count_kv"),
    kFeedForward("feed_forward_length"), kSharing("attention.shared_kv_layers"),
    kExtraWidth("embedding_length_per_layer_input");

// What ops of several layers share, kept by the functions of the style.
struct State {
  ModelBuilder &builder;
  Hyper hyper;
  std::vector<bool> near;
  std::vector<int64_t> keyHeads, feedForward;
  int64_t nearDim = 1;
  int64_t own = 0;          // so many first layers have caches of their own
  Value angles, nearAngles; // of layers that see all tokens, and of the others
  Value caches[2];          // the last one of each kind, the windows' second
  // Whether layers that see all tokens take their keys for values, which files
  // tell by leaving the other product out.
  bool keysAsValues = false;
  int64_t extraWidth = 0; // of what a layer adds for each token; 0: nothing
  Value extra;            // that of all layers

  explicit State(ModelBuilder &builder, const Hyper &hyper);
  void sizes(int64_t layer, Hyper &sizes) const;
  void attention(int64_t layer, AttentionStyle &style);
  void readExtra(Value rows);
  Value end(int64_t number, const std::string &layer, Value rows);
};

State::State(ModelBuilder &builder, const Hyper &hyper)
    : builder(builder), hyper(hyper), near(windowLayers(builder, hyper, 6)),
      keyHeads(builder.layerNumbers(hyper.prefix + kKeyHeads.str(), hyper.layers, hyper.kvHeads)),
      feedForward(builder.layerNumbers(hyper.prefix + kFeedForward.str(), hyper.layers,
                                       hyper.feedForward)) {
  auto number = [&](llvm::StringRef name, int64_t otherwise, int64_t low, int64_t high) {
    return int64_t(
        builder.number(hyper.prefix + name.str(), double(otherwise), double(low), double(high)));
  };
  builder.unwrap<uint64_t>(
      builder.source().requireUInt(hyper.prefix + "attention.sliding_window", 1), 1);
  nearDim = number(kNearDim, hyper.headDim, 1, 1 << 12);
  if (int64_t values = number("attention.value_length_swa", nearDim, 1, 1 << 12); values != nearDim)
    builder.fail(makeError("{0}: keys of {1} and values of {2} numbers a head in layers with a "
                           "window; only equal sizes can be compiled",
                           builder.source().fileName(), nearDim, values));
  own = hyper.layers - number(kSharing, 0, 0, hyper.layers - 1);
  keysAsValues = true;
  for (int64_t i = 0; i < own; ++i)
    keysAsValues &= near[i] || !builder.hasTensor("blk." + std::to_string(i) + ".attn_v.weight");
  extraWidth = number(kExtraWidth, 0, 0, 1 << 16);
  for (int64_t i = 0; i < hyper.layers && !builder.failed(); ++i) {
    if (keyHeads[i] < 1 || hyper.heads % keyHeads[i] != 0 || feedForward[i] < 1)
      builder.fail(makeError("{0}: layer {1} has {2} key heads for {3} heads and a feed-forward "
                             "part of {4} values; expected a divisor and a positive number",
                             builder.source().fileName(), i, keyHeads[i], hyper.heads,
                             feedForward[i]));
    auto end = near.begin() + std::min(own, i);
    if (i >= own && std::find(near.begin(), end, near[i]) == end)
      builder.fail(makeError("{0}: layer {1} reads the cache of an earlier layer of its kind, but "
                             "none of the first {2} is of this kind",
                             builder.source().fileName(), i, own));
  }
  RopeOptions options;
  options.scaled = false;
  options.headDim = nearDim;
  options.baseKey = kNearBase.data();
  options.dimensionKey = kNearRotary.data();
  // Files say by its divisors which frequencies of large heads turn anything.
  if (llvm::is_contained(near, false))
    if (auto freqs = builder.source().requireTensor("rope_freqs.weight"); !freqs)
      builder.fail(freqs.takeError());
  angles = ropeAngles(builder, hyper);
  nearAngles = ropeAngles(builder, hyper, options);
}

void State::sizes(int64_t layer, Hyper &sizes) const {
  sizes.headDim = near[layer] ? nearDim : hyper.headDim;
  sizes.kvHeads = keyHeads[layer];
  sizes.feedForward = feedForward[layer];
}

void State::attention(int64_t layer, AttentionStyle &style) {
  bool isNear = near[layer];
  style.window = isNear ? hyper.window : 0;
  style.angles = isNear ? nearAngles : angles;
  std::string name = "blk." + std::to_string(layer);
  style.keysAsValues = !isNear && keysAsValues;
  if (layer < own) {
    style.keepsCache = &caches[isNear];
    return;
  }
  style.sharedCache = caches[isNear];
  // Some files have the products that a cache of its own would need.
  for (const char *unused : {".attn_k.weight", ".attn_v.weight", ".attn_k_norm.weight"})
    builder.markUsed(name + unused);
}

// For each token and layer: a row of a table and a product of the embedding,
// normed, in equal parts.
void State::readExtra(Value rows) {
  if (extraWidth == 0)
    return;
  int64_t width = extraWidth * hyper.layers;
  Value table = builder.matrix("per_layer_token_embd.weight", hyper.vocabulary, width);
  Value own = builder.create<lm::EmbedOp>(lm::rowsType(builder.context(), width),
                                          builder.input(lm::InputKind::Ids), table);
  Value made = builder.linear(rows, "per_layer_model_proj", width);
  made = builder.scale(made, 1 / std::sqrt(float(hyper.embedding)));
  made = builder.rmsNorm(made, "per_layer_proj_norm", extraWidth, hyper.eps);
  own = builder.scale(own, std::sqrt(float(extraWidth)));
  extra = builder.scale(builder.add(made, own), float(std::numbers::sqrt2 / 2));
}

Value State::end(int64_t number, const std::string &layer, Value rows) {
  if (extraWidth != 0) {
    Value gate = builder.linear(rows, layer + ".inp_gate", extraWidth);
    gate = builder.create<lm::GeluOp>(gate.getType(), gate);
    Value part = builder.create<lm::SliceOp>(gate.getType(), extra, uint64_t(number * extraWidth));
    Value added = builder.linear(builder.mul(gate, part), layer + ".proj", hyper.embedding);
    rows =
        builder.add(rows, builder.rmsNorm(added, layer + ".post_norm", hyper.embedding, hyper.eps));
  }
  std::string scale = layer + ".layer_output_scale.weight";
  return builder.hasTensor(scale) ? builder.scale(rows, builder.readVector(scale, 1)[0]) : rows;
}

Value build(ModelBuilder &builder, llvm::StringRef architecture, ModelFacts &facts) {
  auto makeStyle = [&](const Hyper &hyper) {
    auto state = std::make_shared<State>(builder, hyper);
    DecoderStyle style;
    style.attention.headNorms = HeadNorms::Heads;
    style.attention.valueNorms = true;
    style.attention.scale = 1;
    style.windows = true;
    style.gating = Gating::Gelu;
    style.normsBehind = true;
    style.embeddingScale = std::sqrt(float(hyper.embedding));
    style.sizesOfLayer = [state](int64_t layer, Hyper &sizes) { state->sizes(layer, sizes); };
    style.ofLayer = [state](int64_t layer, AttentionStyle &one) { state->attention(layer, one); };
    style.atStart = [state](Value rows) { state->readExtra(rows); };
    style.atEnd = [state](int64_t number, const std::string &layer, Value rows) {
      return state->end(number, layer, rows);
    };
    return style;
  };
  return decoder(builder, architecture, facts, makeStyle, LayerSizes::Differ);
}

constexpr TensorRule kTensors[] = {
    {"per_layer_token_embd.weight", "model.embed_tokens_per_layer.weight"},
    {"per_layer_model_proj.weight", "model.per_layer_model_projection.weight"},
    {"per_layer_proj_norm.weight", "model.per_layer_projection_norm.weight"},
    {"blk.*.post_attention_norm.weight", "model.layers.*.post_attention_layernorm.weight"},
    {"blk.*.ffn_norm.weight", "model.layers.*.pre_feedforward_layernorm.weight"},
    {"blk.*.post_ffw_norm.weight", "model.layers.*.post_feedforward_layernorm.weight"},
    {"blk.*.inp_gate.weight", "model.layers.*.per_layer_input_gate.weight"},
    {"blk.*.proj.weight", "model.layers.*.per_layer_projection.weight"},
    {"blk.*.post_norm.weight", "model.layers.*.post_per_layer_input_norm.weight"},
    {"blk.*.layer_output_scale.weight", "model.layers.*.layer_scalar"},
};

} // namespace

// The last layer sees all tokens whatever the folder says.
static std::vector<bool> nearLayers(FolderKeys &keys) {
  std::vector<bool> near = keys.equals("layer_types", "sliding_attention", "full_attention");
  if (near.empty()) {
    int64_t layers = std::min<int64_t>(keys.count("num_hidden_layers").value_or(0), 1 << 12);
    for (int64_t i = 0; i < layers; ++i)
      near.push_back((i + 1) % 6 != 0);
  }
  if (!near.empty())
    near.back() = false;
  return near;
}

// What a layer that sees all tokens has instead of `name`: told for each layer
// by newer folders, once for all by older ones.
static std::optional<int64_t> ofFarLayers(FolderKeys &keys, const std::vector<bool> &near,
                                          llvm::StringRef name, llvm::StringRef once) {
  if (!keys.find("per_layer_config"))
    return keys.count(once, 1);
  std::optional<int64_t> same;
  bool isFirst = true;
  for (size_t i = 0; i < near.size(); ++i) {
    if (near[i])
      continue;
    std::string path = llvm::formatv("per_layer_config.{0}.{1}", i, name).str();
    std::optional<int64_t> found = keys.count(path, 1);
    if (!isFirst && found != same)
      keys.refuse(path, "differs from layer to layer; only one value for all layers that see all "
                        "tokens can be compiled");
    same = found;
    isFirst = false;
  }
  return same;
}

// What layers have for themselves: only what ofFarLayers asks for, and only those
// that see all tokens.
static void refuseOtherLayers(FolderKeys &keys, const std::vector<bool> &near) {
  const Json *layers = keys.find("per_layer_config");
  if (!layers)
    return;
  if (!layers->isObject())
    return keys.fail(keys.source().unexpected("per_layer_config", *layers, "an object"));
  for (size_t i = 0; i < layers->items().size(); ++i) {
    size_t layer = 0;
    const Json &one = layers->items()[i];
    std::string path = "per_layer_config." + layers->key(i).str();
    if (layers->key(i).getAsInteger(10, layer) || layer >= near.size() || near[layer] ||
        !one.isObject()) {
      keys.refuse(path,
                  "is not an object of a layer that sees all tokens; others can't be compiled "
                  "with sizes of their own");
      continue;
    }
    for (size_t k = 0; k < one.items().size(); ++k)
      if (one.key(k) != "head_dim" && one.key(k) != "num_key_value_heads")
        keys.refuse(path + "." + one.key(k).str(), "can't be compiled for single layers");
  }
}

// Of the frequencies of a whole head only the first turn anything.
static void proportionalRope(FolderKeys &keys, int64_t dim) {
  const std::string at = "rope_parameters.full_attention.";
  ropeKindKeys(keys);
  // Absent parameters are as in the first model, but not those that are left
  // out where others are there.
  bool isTold = keys.find("rope_parameters") != nullptr;
  auto type = keys.text(at + "rope_type").value_or(isTold ? "default" : "proportional");
  if (type != "proportional" && type != "default")
    return keys.refuse(at + "rope_type",
                       "is " + quote(type) + "; only 'proportional' and 'default' can be compiled");
  double share = keys.number(at + "partial_rotary_factor", 0, 1).value_or(isTold ? 1 : 0.25);
  if (dim < 2 || dim > 4096 || dim % 2 != 0)
    return keys.refuse("global_head_dim",
                       llvm::formatv("is {0}, expected an even number up to 4096", dim).str());
  std::vector<float> divisors(dim / 2, 1e30f);
  if (type == "default")
    share = 1;
  std::fill_n(divisors.begin(), int64_t(share * double(dim) / 2), 1.0f);
  keys.vector("rope_freqs.weight", divisors);
  keys.set("rope.dimension_count", Json::of(dim));
  keys.copyNumber("rope.freq_base", at + "rope_theta");
  if (type == "proportional")
    keys.copyNumber("rope.scaling.factor", at + "factor");
}

// Layers that keep a cache have a product for values, unless those that see all
// tokens take their keys for them.
static void valueProducts(FolderKeys &keys, const std::vector<bool> &near, int64_t sharing) {
  bool once = keys.flag("attention_k_eq_v").value_or(false);
  for (size_t i = 0; i + sharing < near.size(); ++i)
    keys.expect("attention_k_eq_v", llvm::formatv("blk.{0}.attn_k.weight", i).str(),
                llvm::formatv("blk.{0}.attn_v.weight", i).str(), near[i] || !once);
}

static void keys(FolderKeys &keys) {
  for (auto [path, value] : {std::pair("global_head_dim", int64_t(512)),
                             {"rope_parameters.full_attention.rope_theta", int64_t(1000000)}})
    keys.assume(path, Json::of(value));
  if (keys.flag("enable_moe_block").value_or(false))
    keys.refuse("enable_moe_block", "is true, but only models without experts can be compiled for "
                                    "this architecture");
  sizeKeys(keys, "gelu_pytorch_tanh");
  windowKeys(keys, 512);
  causalKeys(keys);
  for (const char *cap : {"attn_logit_softcapping", "final_logit_softcapping"})
    keys.copyNumber(cap, cap);
  keys.copyCount(kExtraWidth, "hidden_size_per_layer_input");
  keys.copyCount(kSharing, "num_kv_shared_layers");

  std::vector<bool> near = nearLayers(keys);
  keys.set("attention.sliding_window_pattern", near, "layer_types");
  refuseOtherLayers(keys, near);
  int64_t nearDim = folderHeadDim(keys);
  int64_t dim = ofFarLayers(keys, near, "head_dim", "global_head_dim").value_or(nearDim);
  for (const char *key : {"attention.key_length", "attention.value_length"})
    keys.set(key, Json::of(dim), "global_head_dim");
  for (llvm::StringRef key :
       {kNearDim, llvm::StringLiteral("attention.value_length_swa"), kNearRotary})
    keys.set(key, Json::of(nearDim), "head_dim");
  ropeBaseKey(keys, kNearBase, "rope_parameters.sliding_attention");
  proportionalRope(keys, dim);

  int64_t heads = keys.count("num_key_value_heads").value_or(0);
  bool once = keys.flag("attention_k_eq_v").value_or(false);
  auto farHeads = ofFarLayers(keys, near, "num_key_value_heads",
                              once ? "num_global_key_value_heads" : "num_key_value_heads");
  int64_t width = keys.count("intermediate_size").value_or(0);
  int64_t sharing = keys.count("num_kv_shared_layers").value_or(0);
  bool doubled = keys.flag("use_double_wide_mlp").value_or(false);
  std::vector<int64_t> keyHeads, widths;
  for (size_t i = 0; i < near.size(); ++i) {
    keyHeads.push_back(near[i] ? heads : farHeads.value_or(heads));
    widths.push_back(doubled && i + sharing >= near.size() ? 2 * width : width);
  }
  keys.set(kKeyHeads, keyHeads, "num_key_value_heads");
  keys.set(kFeedForward, widths, "intermediate_size");
  valueProducts(keys, near, sharing);
}

static constexpr llvm::StringRef kNames[] = {"gemma4"};
static constexpr llvm::StringRef kTypes[] = {"gemma4_text", "gemma4"};
static const FolderMap kFolder = {kTypes, "gemma4", kTensors, decoderTensors, keys};
extern const ModelSpec kGemma4;
const ModelSpec kGemma4 = {kNames, build, &kFolder};

} // namespace izhc::models
