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
    builder.fail(makeError("{0}: {1}attention.key_length_mla is not above rope.dimension_count {2}",
                           source.fileName(), hyper.prefix, latent.turned));
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
    // The scale of the products has it.
    options.grows = false;
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

int64_t sizeOf(const FolderSource &source, llvm::StringRef name) {
  const Json *found = source.config().findPath(name);
  int64_t size = found ? found->asInt().value_or(0) : 0;
  return std::clamp<int64_t>(size, 0, 1 << 16);
}

llvm::Expected<int64_t> heads(const FolderSource &source) {
  return sizeOf(source, "num_attention_heads");
}

// Of each head's keys and values: `count` are there.
std::vector<int64_t> range(int64_t first, int64_t end, int64_t count) {
  std::vector<int64_t> indices(std::max<int64_t>(std::min(end, count) - first, 0));
  std::iota(indices.begin(), indices.end(), first);
  return indices;
}

llvm::Expected<std::vector<int64_t>> plainKeys(const FolderSource &source, int64_t count) {
  return range(0, sizeOf(source, "qk_nope_head_dim"), count);
}

llvm::Expected<std::vector<int64_t>> values(const FolderSource &source, int64_t count) {
  return range(sizeOf(source, "qk_nope_head_dim"), count, count);
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

void keys(FolderKeys &keys) {
  decoderKeys(keys);
  expertKeys(keys);
  int64_t rank = keys.integer("kv_lora_rank").value_or(0);
  int64_t turned = keys.integer("qk_rope_head_dim").value_or(0);
  int64_t plain = keys.integer("qk_nope_head_dim").value_or(0);
  if (auto ranks = keys.integer("q_lora_rank"))
    keys.set("attention.q_lora_rank", Json::of(*ranks));
  for (auto [name, value] : {std::pair("attention.kv_lora_rank", rank),
                             {"attention.head_count_kv", int64_t(1)},
                             {"attention.key_length", rank + turned},
                             {"attention.value_length", rank},
                             {"attention.key_length_mla", plain + turned},
                             {"rope.dimension_count", turned}})
    keys.set(name, Json::of(value));
  keys.copy("attention.value_length_mla", "v_head_dim");
  bool sigmoid = keys.text("scoring_func").value_or("sigmoid") == "sigmoid";
  keys.set("expert_gating_func", Json::of(int64_t(sigmoid ? 2 : 1)));
  auto all = keys.number("rope_parameters.mscale_all_dim|rope_scaling.mscale_all_dim");
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
