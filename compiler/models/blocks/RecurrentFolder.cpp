// What folders say of linear attention with the gated delta rule, and in what
// order their matrices hold its heads.

#include "compiler/models/blocks/DecoderFolder.h"
#include "compiler/models/blocks/Recurrent.h"
#include "compiler/support/Error.h"
#include <algorithm>
#include <array>

namespace izhc {

void deltaKeys(FolderKeys &keys) {
  keys.assume("partial_rotary_factor", Json::of(0.25));
  sizeKeys(keys);
  ropeKeys(keys);
  if (!keys.flag("attn_output_gate").value_or(true))
    keys.refuse("attn_output_gate", "is false, but only attention with gates can be compiled");
  // Newer ones name the gate of the heads of linear attention.
  if (auto gate = keys.text("output_gate_type"); gate && *gate != "swish" && *gate != "silu")
    keys.refuse("output_gate_type", "is " + quote(*gate) + ", but only 'swish' can be compiled");
  keys.copyCount("ssm.group_count", "linear_num_key_heads");
  keys.copyCount("ssm.state_size", "linear_key_head_dim");
  keys.copyCount("ssm.time_step_rank", "linear_num_value_heads");
  keys.copyCount("ssm.conv_kernel", "linear_conv_kernel_dim");
  int64_t heads = keys.count("linear_num_value_heads").value_or(0);
  int64_t dim = keys.count("linear_value_head_dim").value_or(0);
  if (heads > 0 && dim > 0 && heads < (1 << 20) && dim < (1 << 20))
    keys.set("ssm.inner_size", Json::of(heads * dim));
  keys.copyCount("full_attention_interval", "full_attention_interval");
  std::vector<bool> recurrent = keys.equals("layer_types", "linear_attention", "full_attention");
  if (recurrent.empty())
    return;
  keys.set("attention.recurrent_layers", recurrent, "layer_types");
  // Other readers of GGUF files know only where the first one that isn't comes, if
  // the others keep that distance.
  int64_t interval = llvm::find(recurrent, false) - recurrent.begin() + 1;
  bool even = true;
  for (size_t i = 0; i < recurrent.size(); ++i)
    even &= recurrent[i] == ((int64_t(i) + 1) % interval != 0);
  if (even && interval <= int64_t(recurrent.size()))
    keys.set("full_attention_interval", Json::of(interval), "layer_types");
}

namespace {

using Indices = llvm::Expected<std::vector<int64_t>>;

struct DeltaSizes {
  int64_t keyHeads, keyDim, valueHeads, valueDim;

  static llvm::Expected<DeltaSizes> read(const FolderSource &source) {
    constexpr llvm::StringRef names[] = {"linear_num_key_heads", "linear_key_head_dim",
                                         "linear_num_value_heads", "linear_value_head_dim"};
    int64_t sizes[4];
    for (auto [size, name] : llvm::zip(sizes, names)) {
      auto found = source.count(name);
      if (!found)
        return found.takeError();
      size = *found;
    }
    if (sizes[0] < 1 || sizes[2] % sizes[0] != 0)
      return makeError("{0}/config.json: linear_num_value_heads is {1}, expected a multiple of "
                       "linear_num_key_heads, which is {2}",
                       source.fileName(), sizes[2], sizes[0]);
    return DeltaSizes{sizes[0], sizes[1], sizes[2], sizes[3]};
  }

  // Values of the heads that share a key head.
  int64_t groupWidth() const { return valueHeads / keyHeads * valueDim; }
};

//===----------------------------------------------------------------------===//
// One matrix for queries, keys, values and gates
//===----------------------------------------------------------------------===//

// Rows of the matrix that holds, for one key head after the other, the query, the
// key, and values and gates of its value heads. All queries come first, then all keys.
struct GroupedRows {
  DeltaSizes sizes;

  static llvm::Expected<GroupedRows> read(const FolderSource &source, int64_t count) {
    auto sizes = DeltaSizes::read(source);
    if (!sizes)
      return sizes.takeError();
    GroupedRows rows = {*sizes};
    if (sizes->keyHeads * rows.width() != count)
      return makeError("{0}/config.json: {1} key heads of {2} values with {3} values each need {4} "
                       "rows of in_proj_qkvz.weight, but it has {5}",
                       source.fileName(), sizes->keyHeads, sizes->keyDim, sizes->groupWidth(),
                       sizes->keyHeads * rows.width(), count);
    return rows;
  }

  int64_t width() const { return 2 * (sizes.keyDim + sizes.groupWidth()); }

  void add(std::vector<int64_t> &indices, int64_t first, int64_t run) const {
    for (int64_t head = 0; head < sizes.keyHeads; ++head)
      for (int64_t i = 0; i < run; ++i)
        indices.push_back(head * width() + first + i);
  }
};

Indices mixedRows(const FolderSource &source, int64_t count) {
  auto rows = GroupedRows::read(source, count);
  if (!rows)
    return rows.takeError();
  std::vector<int64_t> indices;
  rows->add(indices, 0, rows->sizes.keyDim);
  rows->add(indices, rows->sizes.keyDim, rows->sizes.keyDim);
  rows->add(indices, 2 * rows->sizes.keyDim, rows->sizes.groupWidth());
  return indices;
}

Indices gateRows(const FolderSource &source, int64_t count) {
  auto rows = GroupedRows::read(source, count);
  if (!rows)
    return rows.takeError();
  std::vector<int64_t> indices;
  rows->add(indices, 2 * rows->sizes.keyDim + rows->sizes.groupWidth(), rows->sizes.groupWidth());
  return indices;
}

//===----------------------------------------------------------------------===//
// Value heads so that neighbours have different key heads
//===----------------------------------------------------------------------===//

// Indices of `count` rows, columns or values: the first `before` stay, then come
// value heads of `size` each. Folders have heads that share a key head together.
Indices tiled(const FolderSource &source, const DeltaSizes &sizes, int64_t before, int64_t size,
              int64_t count) {
  if (count != before + sizes.valueHeads * size)
    return makeError(
        "{0}/config.json: {1} value heads of {2} values, {3} key heads of {4}: that "
        "makes {5} rows or columns of a matrix of linear_attn that has {6}; config.json "
        "and the weights don't belong together",
        source.fileName(), sizes.valueHeads, sizes.valueDim, sizes.keyHeads, sizes.keyDim,
        before + sizes.valueHeads * size, count);
  int64_t group = sizes.valueHeads / sizes.keyHeads;
  std::vector<int64_t> indices;
  indices.reserve(size_t(count));
  for (int64_t i = 0; i < before; ++i)
    indices.push_back(i);
  for (int64_t head = 0; head < sizes.valueHeads; ++head) {
    int64_t stored = head % sizes.keyHeads * group + head / sizes.keyHeads;
    for (int64_t i = 0; i < size; ++i)
      indices.push_back(before + stored * size + i);
  }
  return indices;
}

// One number a head.
Indices tiledHeads(const FolderSource &source, int64_t count) {
  auto sizes = DeltaSizes::read(source);
  return sizes ? tiled(source, *sizes, 0, 1, count) : Indices(sizes.takeError());
}
Indices tiledValues(const FolderSource &source, int64_t count) {
  auto sizes = DeltaSizes::read(source);
  return sizes ? tiled(source, *sizes, 0, sizes->valueDim, count) : Indices(sizes.takeError());
}
// Queries and keys of all key heads come first.
Indices tiledMixed(const FolderSource &source, int64_t count) {
  auto sizes = DeltaSizes::read(source);
  return sizes ? tiled(source, *sizes, 2 * sizes->keyHeads * sizes->keyDim, sizes->valueDim, count)
               : Indices(sizes.takeError());
}

constexpr std::array kNorms = {
    TensorRule{"output_norm.weight", "model.norm.weight", Change::PlusOne},
    TensorRule{"blk.*.attn_norm.weight", "model.layers.*.input_layernorm.weight", Change::PlusOne},
    TensorRule{"blk.*.post_attention_norm.weight", "model.layers.*.post_attention_layernorm.weight",
               Change::PlusOne},
    TensorRule{"blk.*.attn_q_norm.weight", "model.layers.*.self_attn.q_norm.weight",
               Change::PlusOne},
    TensorRule{"blk.*.attn_k_norm.weight", "model.layers.*.self_attn.k_norm.weight",
               Change::PlusOne},
    TensorRule{"blk.*.ssm_norm.weight", "model.layers.*.linear_attn.norm.weight"},
    // Prediction of further tokens is not compiled.
    TensorRule{"", "mtp.**"},
};

constexpr std::array kGrouped = {
    TensorRule{"blk.*.attn_qkv.weight", "model.layers.*.linear_attn.in_proj_qkvz.weight",
               Change::None, mixedRows},
    TensorRule{"blk.*.attn_gate.weight", "model.layers.*.linear_attn.in_proj_qkvz.weight",
               Change::None, gateRows},
    TensorRule{"blk.*.ssm_ba.weight", "model.layers.*.linear_attn.in_proj_ba.weight"},
    TensorRule{"blk.*.ssm_conv1d.weight", "model.layers.*.linear_attn.conv1d.weight"},
    TensorRule{"blk.*.ssm_a", "model.layers.*.linear_attn.A_log", Change::NegativeExp},
    TensorRule{"blk.*.ssm_dt.bias", "model.layers.*.linear_attn.dt_bias"},
    TensorRule{"blk.*.ssm_out.weight", "model.layers.*.linear_attn.out_proj.weight"},
};

constexpr std::array kTiled = {
    TensorRule{"blk.*.attn_qkv.weight", "model.layers.*.linear_attn.in_proj_qkv.weight",
               Change::None, tiledMixed},
    TensorRule{"blk.*.attn_gate.weight", "model.layers.*.linear_attn.in_proj_z.weight",
               Change::None, tiledValues},
    TensorRule{"blk.*.ssm_beta.weight", "model.layers.*.linear_attn.in_proj_b.weight", Change::None,
               tiledHeads},
    TensorRule{"blk.*.ssm_alpha.weight", "model.layers.*.linear_attn.in_proj_a.weight",
               Change::None, tiledHeads},
    TensorRule{"blk.*.ssm_conv1d.weight", "model.layers.*.linear_attn.conv1d.weight", Change::None,
               tiledMixed},
    TensorRule{"blk.*.ssm_a", "model.layers.*.linear_attn.A_log", Change::NegativeExp, nullptr,
               tiledHeads},
    TensorRule{"blk.*.ssm_dt.bias", "model.layers.*.linear_attn.dt_bias", Change::None, nullptr,
               tiledHeads},
    TensorRule{"blk.*.ssm_out.weight", "model.layers.*.linear_attn.out_proj.weight", Change::None,
               nullptr, tiledValues},
};

template <size_t N, size_t M>
constexpr std::array<TensorRule, N + M> join(const std::array<TensorRule, N> &a,
                                             const std::array<TensorRule, M> &b) {
  std::array<TensorRule, N + M> all = {};
  std::copy(a.begin(), a.end(), all.begin());
  std::copy(b.begin(), b.end(), all.begin() + N);
  return all;
}

} // namespace

llvm::ArrayRef<TensorRule> groupedDeltaTensors() {
  static constexpr auto rules = join(kNorms, kGrouped);
  return rules;
}

llvm::ArrayRef<TensorRule> tiledDeltaTensors() {
  static constexpr auto rules = join(kNorms, kTiled);
  return rules;
}

} // namespace izhc
