// The names that most published decoders use.

#include "compiler/models/blocks/DecoderFolder.h"
#include "compiler/support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>
#include <numbers>

namespace izhc {

llvm::ArrayRef<TensorRule> decoderTensors() {
  static constexpr TensorRule rules[] = {
      {"token_embd.weight", "model.embed_tokens.weight"},
      {"output_norm.weight", "model.norm.weight"},
      {"output.weight", "lm_head.weight"},
      {"blk.*.attn_norm.weight", "model.layers.*.input_layernorm.weight"},
      {"blk.*.ffn_norm.weight", "model.layers.*.post_attention_layernorm.weight"},
      {"blk.*.attn_q.weight", "model.layers.*.self_attn.q_proj.weight"},
      {"blk.*.attn_k.weight", "model.layers.*.self_attn.k_proj.weight"},
      {"blk.*.attn_v.weight", "model.layers.*.self_attn.v_proj.weight"},
      {"blk.*.attn_output.weight", "model.layers.*.self_attn.o_proj.weight"},
      {"blk.*.attn_q.bias", "model.layers.*.self_attn.q_proj.bias"},
      {"blk.*.attn_k.bias", "model.layers.*.self_attn.k_proj.bias"},
      {"blk.*.attn_v.bias", "model.layers.*.self_attn.v_proj.bias"},
      {"blk.*.attn_output.bias", "model.layers.*.self_attn.o_proj.bias"},
      {"blk.*.attn_q_norm.weight", "model.layers.*.self_attn.q_norm.weight"},
      {"blk.*.attn_k_norm.weight", "model.layers.*.self_attn.k_norm.weight"},
      {"blk.*.ffn_gate.weight", "model.layers.*.mlp.gate_proj.weight"},
      {"blk.*.ffn_up.weight", "model.layers.*.mlp.up_proj.weight"},
      {"blk.*.ffn_down.weight", "model.layers.*.mlp.down_proj.weight"},
      {"blk.*.ffn_gate.bias", "model.layers.*.mlp.gate_proj.bias"},
      {"blk.*.ffn_up.bias", "model.layers.*.mlp.up_proj.bias"},
      {"blk.*.ffn_down.bias", "model.layers.*.mlp.down_proj.bias"},
      // Old files carry the frequencies, which are computed here.
      {"", "model.layers.*.self_attn.rotary_emb.inv_freq"},
      {"", "model.rotary_emb.inv_freq"},
  };
  return rules;
}

// Which rows of a folder's queries or keys make pairs: of each head one of the
// first half, then one of the second.
static llvm::Expected<std::vector<int64_t>> pairs(const FolderSource &source, int64_t count) {
  const Json *text = source.config().find("text_config");
  auto number = [&](const char *key) -> int64_t {
    const Json *found = text ? text->find(key) : nullptr;
    found = found ? found : source.config().find(key);
    return found ? found->asInt().value_or(0) : 0;
  };
  int64_t heads = number("num_attention_heads"), head = number("head_dim");
  if (head == 0 && heads > 0)
    head = number("hidden_size") / heads;
  if (head < 2 || head % 2 != 0 || count % head != 0)
    return makeError("{0}: {1} rows of queries or keys can't be pairs in heads of {2} values",
                     source.fileName(), count, head);
  std::vector<int64_t> rows;
  for (int64_t first = 0; first < count; first += head)
    for (int64_t i = 0; i < head / 2; ++i)
      rows.insert(rows.end(), {first + i, first + head / 2 + i});
  return rows;
}

llvm::ArrayRef<TensorRule> pairedHeads() {
  static constexpr TensorRule rules[] = {
      {"blk.*.attn_q.weight", "model.layers.*.self_attn.q_proj.weight", Change::None, pairs},
      {"blk.*.attn_k.weight", "model.layers.*.self_attn.k_proj.weight", Change::None, pairs},
      {"blk.*.attn_q.bias", "model.layers.*.self_attn.q_proj.bias", Change::None, nullptr, pairs},
      {"blk.*.attn_k.bias", "model.layers.*.self_attn.k_proj.bias", Change::None, nullptr, pairs},
  };
  return rules;
}

int64_t folderHeadDim(const FolderKeys &keys) {
  if (auto dim = keys.integer("head_dim"))
    return *dim;
  int64_t heads = keys.integer("num_attention_heads").value_or(0);
  return heads > 0 ? keys.integer("hidden_size").value_or(0) / heads : 0;
}

void decoderKeysOf(FolderKeys &keys, llvm::StringRef activation) {
  keys.copy("context_length", "max_position_embeddings");
  keys.copy("embedding_length", "hidden_size");
  keys.copy("block_count", "num_hidden_layers");
  keys.copy("feed_forward_length", "intermediate_size");
  keys.copy("attention.head_count", "num_attention_heads");
  keys.copy("attention.head_count_kv", "num_key_value_heads");
  keys.copy("attention.key_length", "head_dim");
  keys.copy("attention.value_length", "head_dim");
  keys.copy("attention.layer_norm_rms_epsilon", "rms_norm_eps|norm_eps|layer_norm_epsilon");
  // Some name a window that is switched off.
  if (keys.flag("use_sliding_window").value_or(true))
    keys.copy("attention.sliding_window", "sliding_window");
  auto named = keys.find("hidden_activation|hidden_act");
  auto name = named ? named->asString() : std::nullopt;
  if (name && *name != activation && !(activation == "silu" && *name == "swish"))
    keys.fail(makeError("{0}/config.json: the activation is {1}, but this architecture is compiled "
                        "with {2}",
                        keys.fileName(), quote(*name), quote(activation)));
  ropeKeys(keys);
}

void causalKeys(FolderKeys &keys) {
  const Json *both = keys.find("use_bidirectional_attention");
  if (both && (both->asBool() == true || both->asString() == "all"))
    keys.set("attention.causal", Json::of(false));
}

// One divisor a frequency: long waves are stretched, short ones are not, and
// between the two there is a ramp.
static void stretchLongWaves(FolderKeys &keys, const std::string &at, double base, int64_t rotary) {
  double numbers[4];
  const char *names[] = {"factor", "low_freq_factor", "high_freq_factor",
                         "original_max_position_embeddings"};
  for (int i = 0; i < 4; ++i) {
    auto number = keys.number(at + names[i]);
    if (!number || !(*number > 0 && *number < 1e9))
      return keys.fail(makeError("{0}/config.json: {1}{2} is missing or out of range, expected a "
                                 "number above 0",
                                 keys.fileName(), at, names[i]));
    numbers[i] = *number;
  }
  auto [factor, low, high, original] = numbers;
  if (!(high > low))
    return keys.fail(makeError("{0}/config.json: {1}high_freq_factor is {2}, expected more than "
                               "low_freq_factor {3}",
                               keys.fileName(), at, high, low));
  std::vector<float> divisors;
  for (int64_t i = 0; i < rotary / 2; ++i) {
    double wave = 2 * std::numbers::pi * std::pow(base, 2.0 * double(i) / double(rotary));
    double ramp = std::clamp((original / wave - low) / (high - low), 0.0, 1.0);
    divisors.push_back(float(1 / ((1 - ramp) / factor + ramp)));
  }
  keys.vector("rope_freqs.weight", divisors);
}

void ropeKeys(FolderKeys &keys, llvm::StringRef where) {
  std::string at = where.str() + ".", old = "rope_scaling.";
  auto either = [&](const char *name) { return at + name + "|" + old + name; };
  keys.copy("rope.freq_base", at + "rope_theta|rope_theta");
  double base = keys.number(at + "rope_theta|rope_theta").value_or(10000);
  int64_t head = folderHeadDim(keys);
  double share = keys.number(at + "partial_rotary_factor|partial_rotary_factor").value_or(1);
  if (!(share > 0 && share <= 1) || head < 1 || head > (1 << 16) || !(base > 1 && base < 1e15))
    return keys.fail(makeError("{0}/config.json: heads of {1} values, of which a share of {2} is "
                               "turned with the base {3}, can't be compiled",
                               keys.fileName(), head, share, base));
  int64_t rotary = int64_t(double(head) * share);
  keys.set("rope.dimension_count", Json::of(rotary));

  const Json *named = keys.find(either("rope_type") + "|" + old + "type");
  llvm::StringRef type = named ? named->asString().value_or("") : "default";
  if (type == "default")
    return;
  if (type == "llama3") {
    bool isNew = keys.find(where) != nullptr;
    return stretchLongWaves(keys, isNew ? at : old, base, rotary);
  }
  if (type != "linear" && type != "yarn" && type != "longrope")
    return keys.fail(makeError("{0}/config.json: the rope type {1} can't be compiled",
                               keys.fileName(), quote(type)));
  keys.set("rope.scaling.type", Json::of(type));
  keys.copy("rope.scaling.factor", either("factor"));
  keys.copy("rope.scaling.original_context_length",
            either("original_max_position_embeddings") + "|original_max_position_embeddings");
  keys.copy("rope.scaling.attn_factor", either("attention_factor"));
  keys.copy("rope.scaling.yarn_beta_fast", either("beta_fast"));
  keys.copy("rope.scaling.yarn_beta_slow", either("beta_slow"));
  keys.copy("rope.scaling.yarn_truncate", either("truncate"));
  for (auto [list, tensor] : {std::pair("long_factor", "rope_factors_long.weight"),
                              std::pair("short_factor", "rope_factors_short.weight")}) {
    std::vector<float> factors;
    if (const Json *found = keys.find(either(list)))
      for (const Json &item : found->items())
        factors.push_back(float(item.asNumber().value_or(0)));
    keys.vector(tensor, factors);
  }
}

} // namespace izhc
