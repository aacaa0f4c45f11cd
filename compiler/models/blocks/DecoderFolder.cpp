// The names that most published decoders use.

#include "compiler/models/blocks/DecoderFolder.h"
#include "compiler/support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

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
  constexpr llvm::StringRef names[] = {"num_attention_heads", "head_dim", "hidden_size"};
  int64_t numbers[3];
  for (auto [number, name] : llvm::zip(numbers, names)) {
    auto found = source.count(name);
    if (!found)
      return found.takeError();
    number = *found;
  }
  auto [heads, head, width] = numbers;
  if (head == 0 && heads > 0)
    head = width / heads;
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
  if (auto dim = keys.count("head_dim"))
    return *dim;
  int64_t heads = keys.count("num_attention_heads").value_or(0);
  return heads > 0 ? keys.count("hidden_size").value_or(0) / heads : 0;
}

void biasKeys(FolderKeys &keys, llvm::StringRef path, llvm::ArrayRef<const char *> names) {
  bool present = keys.flag(path).value_or(false);
  for (const char *name : names)
    keys.expect(path, llvm::formatv("blk.*.{0}.weight", name).str(),
                llvm::formatv("blk.*.{0}.bias", name).str(), present);
}

void sizeKeys(FolderKeys &keys, llvm::StringRef activation) {
  keys.copyCount("context_length", "max_position_embeddings");
  keys.copyCount("embedding_length", "hidden_size");
  keys.copyCount("block_count", "num_hidden_layers");
  keys.copyCount("feed_forward_length", "intermediate_size");
  keys.copyCount("attention.head_count", "num_attention_heads");
  keys.copyCount("attention.head_count_kv", "num_key_value_heads");
  keys.copyCount("attention.key_length", "head_dim");
  keys.copyCount("attention.value_length", "head_dim");
  keys.copyNumber("attention.layer_norm_rms_epsilon", "rms_norm_eps|norm_eps|layer_norm_epsilon");
  // Some name a window that is switched off.
  if (keys.flag("use_sliding_window").value_or(true))
    keys.copyCount("attention.sliding_window", "sliding_window");
  keys.copyFlag("attention.causal", "is_causal");
  auto name = keys.text("hidden_activation|hidden_act");
  if (name && *name != activation && !(activation == "silu" && *name == "swish"))
    keys.refuse("hidden_act", "is " + quote(*name) + ", but this architecture is compiled with " +
                                  quote(activation));
  constexpr llvm::StringLiteral attention("attention_bias|qkv_bias"), out("attention_out_bias");
  biasKeys(keys, attention, {"attn_q", "attn_k", "attn_v"});
  // One flag tells of all four, unless the architecture has another for the output.
  biasKeys(keys, keys.find(out) ? out : attention, {"attn_output"});
  biasKeys(keys, "mlp_bias", {"ffn_gate", "ffn_up", "ffn_down"});
}

void decoderKeysOf(FolderKeys &keys, llvm::StringRef activation) {
  sizeKeys(keys, activation);
  keys.equals("layer_types", "full_attention");
  ropeKeys(keys);
}

void preScaleKey(FolderKeys &keys, llvm::StringRef ours) {
  constexpr llvm::StringLiteral name("query_pre_attn_scalar");
  double scalar = keys.number(name, 1e-6, 1e6).value_or(256);
  keys.set(ours, Json::of(1 / std::sqrt(scalar)), name);
}

void causalKeys(FolderKeys &keys) {
  constexpr llvm::StringLiteral name("use_bidirectional_attention");
  const Json *both = keys.find(name);
  if (!both)
    return;
  auto text = both->asString();
  if (both->asBool() == true || text == "all")
    return keys.set("attention.causal", Json::of(false), name);
  if (!both->asBool() && text != "vision")
    keys.fail(keys.source().unexpected(name, *both, "true, false, 'all' or 'vision'"));
}

} // namespace izhc
