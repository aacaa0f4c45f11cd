// DeepSeek 2 and 3 and models of their make: latent attention and, after some
// dense layers, experts that sigmoids (or a softmax) rate.
//
// The cache holds one latent row a token and one small key that is turned, both
// shared by all heads. Queries are brought into the latent space by a matrix of
// each head, and what attention makes of the latent rows is brought out of it
// by another, so keys and values themselves are never made.

#include "compiler/models/blocks/Decoder.h"
#include "compiler/models/blocks/DecoderFolder.h"
#include "compiler/models/blocks/Rope.h"
#include <cmath>
#include <numeric>

namespace izhc::models {

using mlir::Value;

namespace {

struct Latent {
  int64_t queryRank; // 0: queries are made from the rows themselves
  int64_t rank;
  int64_t plain, turned; // values of a head's query and key
  int64_t value;
  float scale;

  int64_t key() const { return plain + turned; }
};

Latent readLatent(ModelBuilder &builder, const Hyper &hyper) {
  const ModelSource &source = builder.source();
  auto number = [&](const char *name, uint64_t low, uint64_t high) {
    return int64_t(builder.unwrap<uint64_t>(source.requireUInt(hyper.prefix + name, low, high),
                                            std::max<uint64_t>(low, 1)));
  };
  Latent latent;
  latent.queryRank = int64_t(builder.unwrap<uint64_t>(
      source.getUIntOr(hyper.prefix + "attention.q_lora_rank", 0, 0, 1 << 16), 0));
  latent.rank = number("attention.kv_lora_rank", 1, 1 << 12);
  latent.turned = number("rope.dimension_count", 2, 1 << 12);
  latent.plain = number("attention.key_length_mla", 3, 1 << 12) - latent.turned;
  latent.value = number("attention.value_length_mla", 1, 1 << 12);
  if (latent.plain < 1) {
    builder.fail(makeError("{0} is not above the {1} values of it that are turned",
                           source.keyPlace(hyper.prefix + "attention.key_length_mla"),
                           latent.turned));
    latent.plain = 1;
  }
  // With yarn the products grow as the logarithm of the context does.
  double factor = builder.number(hyper.prefix + "rope.scaling.factor", 1, 1e-3, 1e6);
  double by = builder.number(hyper.prefix + "rope.scaling.yarn_log_multiplier", 0, 0, 1e3);
  double grown = factor <= 1 ? 1 : 1 + by * std::log(factor);
  latent.scale = float(grown * grown / std::sqrt(double(latent.key())));
  return latent;
}

// Queries in the latent space, each with its turned part behind it.
Value queries(ModelBuilder &builder, const Hyper &hyper, const Latent &latent, Value angles,
              const std::string &layer, Value input) {
  std::string name = layer + ".attn_q";
  if (latent.queryRank) {
    input = builder.linear(input, layer + ".attn_q_a", latent.queryRank);
    input = builder.rmsNorm(input, layer + ".attn_q_a_norm", latent.queryRank, hyper.eps);
    name = layer + ".attn_q_b";
  }
  int64_t heads = hyper.heads, key = latent.key();
  Value plain =
      builder.linear(input, name, heads * latent.plain, RowView{0, latent.plain, key, heads * key});
  Value turned = builder.linear(input, name, heads * latent.turned,
                                RowView{latent.plain, latent.turned, key, heads * key});
  Value intoLatent = builder.stack(layer + ".attn_k_b.weight", heads, latent.rank, latent.plain);
  auto rows = [&](int64_t width) { return lm::rowsType(builder.context(), width); };
  plain = builder.create<lm::HeadLinearOp>(rows(heads * latent.rank), plain, intoLatent);
  turned = builder.create<lm::RopeOp>(turned.getType(), turned, angles, lm::RopeStyle::Pairs,
                                      uint64_t(latent.turned));
  return builder.create<lm::JoinOp>(rows(heads * (latent.rank + latent.turned)), plain, turned,
                                    uint64_t(heads));
}

Value latentAttention(ModelBuilder &builder, const Hyper &hyper, const Latent &latent, Value angles,
                      const std::string &layer, Value input) {
  int64_t width = latent.rank + latent.turned;
  auto rows = [&](int64_t width) { return lm::rowsType(builder.context(), width); };
  std::string name = layer + ".attn_kv_a_mqa";
  Value row = builder.linear(input, name, latent.rank, RowView::together(0, latent.rank, width));
  row = builder.rmsNorm(row, layer + ".attn_kv_a_norm", latent.rank, hyper.eps);
  Value turned = builder.linear(input, name, latent.turned,
                                RowView::together(latent.rank, latent.turned, width));
  turned = builder.create<lm::RopeOp>(turned.getType(), turned, angles, lm::RopeStyle::Pairs,
                                      uint64_t(latent.turned));
  Value keys = builder.create<lm::JoinOp>(rows(width), row, turned, uint64_t(1));
  auto type = lm::KvCacheType::get(builder.context(), 1, width, latent.rank);
  Value cache =
      builder.create<lm::StateOp>(type, mlir::StringAttr::get(builder.context(), layer + ".cache"));
  cache = builder.create<lm::AppendOp>(type, cache, keys, row);
  Value found = builder.create<lm::AttentionOp>(
      rows(hyper.heads * latent.rank), queries(builder, hyper, latent, angles, layer, input), cache,
      Value(), uint64_t(hyper.heads), llvm::APFloat(latent.scale), uint64_t(0),
      llvm::APFloat(0.0f));
  Value outOfLatent =
      builder.stack(layer + ".attn_v_b.weight", hyper.heads, latent.value, latent.rank);
  Value values =
      builder.create<lm::HeadLinearOp>(rows(hyper.heads * latent.value), found, outOfLatent);
  return builder.linear(values, layer + ".attn_output", hyper.embedding);
}

Value build(ModelBuilder &builder, llvm::StringRef architecture, ModelFacts &facts) {
  return decoder(builder, architecture, facts, [&](const Hyper &hyper) {
    DecoderStyle style;
    Latent latent = readLatent(builder, hyper);
    RopeOptions options;
    options.headDim = latent.turned;
    // In GGUF files the scale of the products has it; folders may tell it too.
    options.grows = builder.source().hasKey(hyper.prefix + "rope.scaling.yarn_attn_factor");
    Value angles = ropeAngles(builder, hyper, options);
    style.mixer = [&builder, hyper, latent, angles](int64_t, const std::string &layer,
                                                    Value input) {
      return latentAttention(builder, hyper, latent, angles, layer, input);
    };
    style.routing = Routing();
    style.routing->normalize = false;
    return style;
  });
}

llvm::Expected<int64_t> heads(const FolderSource &source) {
  return source.count("num_attention_heads");
}

// Of each head's keys and values: `count` are there.
std::vector<int64_t> range(int64_t first, int64_t end, int64_t count) {
  std::vector<int64_t> indices(std::max<int64_t>(std::min(end, count) - first, 0));
  std::iota(indices.begin(), indices.end(), first);
  return indices;
}

llvm::Expected<std::vector<int64_t>> plainKeys(const FolderSource &source, int64_t count) {
  auto plain = source.count("qk_nope_head_dim");
  if (!plain)
    return plain.takeError();
  return range(0, *plain, count);
}

llvm::Expected<std::vector<int64_t>> values(const FolderSource &source, int64_t count) {
  auto plain = source.count("qk_nope_head_dim");
  if (!plain)
    return plain.takeError();
  return range(*plain, count, count);
}

constexpr TensorRule kTensors[] = {
    {"blk.*.attn_q_a.weight", "model.layers.*.self_attn.q_a_proj.weight"},
    {"blk.*.attn_q_a_norm.weight", "model.layers.*.self_attn.q_a_layernorm.weight"},
    {"blk.*.attn_q_b.weight", "model.layers.*.self_attn.q_b_proj.weight"},
    {"blk.*.attn_kv_a_mqa.weight", "model.layers.*.self_attn.kv_a_proj_with_mqa.weight"},
    {"blk.*.attn_kv_a_norm.weight", "model.layers.*.self_attn.kv_a_layernorm.weight"},
    {"blk.*.attn_k_b.weight", "model.layers.*.self_attn.kv_b_proj.weight", Change::Transpose,
     nullptr, plainKeys, heads},
    {"blk.*.attn_v_b.weight", "model.layers.*.self_attn.kv_b_proj.weight", Change::None, values,
     nullptr, heads},
};

// Settings of other models of this make.
void refuseOthers(FolderKeys &keys) {
  if (!keys.flag("rope_interleave").value_or(true))
    keys.refuse("rope_interleave", "is false, but only neighbours can be compiled as pairs");
  if (keys.flag("attention_bias").value_or(false))
    keys.refuse("attention_bias", "is true, but latent attention can't be compiled with biases");
  auto method = keys.text("topk_method").value_or("noaux_tc");
  if (method != "noaux_tc")
    keys.refuse("topk_method", "is " + quote(method) + "; only 'noaux_tc' can be compiled");
}

void keys(FolderKeys &keys) {
  for (auto [path, value] : {std::pair("n_group", 8), {"topk_group", 4}, {"n_shared_experts", 1}})
    keys.assume(path, Json::of(int64_t(value)));
  keys.assume("routed_scaling_factor", Json::of(2.5));
  keys.assume("norm_topk_prob", Json::of(true));
  refuseOthers(keys);
  decoderKeys(keys);
  expertKeys(keys);
  int64_t rank = keys.count("kv_lora_rank").value_or(0);
  int64_t turned = keys.count("qk_rope_head_dim").value_or(0);
  int64_t plain = keys.count("qk_nope_head_dim").value_or(0);
  if (auto ranks = keys.count("q_lora_rank"))
    keys.set("attention.q_lora_rank", Json::of(*ranks), "q_lora_rank");
  keys.set("attention.kv_lora_rank", Json::of(rank), "kv_lora_rank");
  keys.set("attention.head_count_kv", Json::of(int64_t(1)));
  keys.set("attention.key_length", Json::of(rank + turned));
  keys.set("attention.value_length", Json::of(rank), "kv_lora_rank");
  keys.set("attention.key_length_mla", Json::of(plain + turned), "qk_nope_head_dim");
  keys.set("rope.dimension_count", Json::of(turned), "qk_rope_head_dim");
  keys.copyCount("attention.value_length_mla", "v_head_dim");
  auto scoring = keys.text("scoring_func").value_or("sigmoid");
  if (scoring != "sigmoid" && scoring != "softmax")
    keys.refuse("scoring_func", "is " + quote(scoring) + ", expected 'sigmoid' or 'softmax'");
  keys.set("expert_gating_func", Json::of(int64_t(scoring == "sigmoid" ? 2 : 1)));
  auto all = keys.number("rope_parameters.mscale_all_dim|rope_scaling.mscale_all_dim", 0, 1e3);
  if (all)
    keys.set("rope.scaling.yarn_log_multiplier", Json::of(0.1 * *all));
}

} // namespace

static constexpr llvm::StringRef kNames[] = {"deepseek2"};
static constexpr llvm::StringRef kTypes[] = {"deepseek_v3"};
static const FolderMap kFolder = {kTypes, "deepseek2", kTensors, mixtureTensors, keys};
extern const ModelSpec kDeepSeek2;
const ModelSpec kDeepSeek2 = {kNames, build, &kFolder};

} // namespace izhc::models
