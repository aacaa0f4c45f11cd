// The ops of short convolutions and of the gated delta rule.

#include "compiler/models/blocks/Recurrent.h"
#include "compiler/models/blocks/DecoderFolder.h"
#include "compiler/models/blocks/Rope.h"
#include <initializer_list>

namespace izhc {

using mlir::Value;

// A convolution of the columns of `input` with the matrix `weight` (columns x
// taps) and a state of its own.
static Value convolution(ModelBuilder &builder, const std::string &layer, const std::string &weight,
                         int64_t taps, bool silu, Value input) {
  int64_t width = lm::widthOf(input);
  Value factors = builder.vectors(weight, width, taps);
  auto type = lm::RowStateType::get(builder.context(), width, taps - 1);
  Value state = builder.state(layer + ".conv", type);
  auto op = builder.create<lm::ShortConvOp>(mlir::TypeRange{input.getType(), type}, input, factors,
                                            state, silu);
  return op.getResult();
}

Value gatedConvolution(ModelBuilder &builder, const Hyper &hyper, const std::string &layer,
                       Value input) {
  int64_t width = hyper.embedding;
  int64_t taps = int64_t(builder.number(hyper.prefix + "shortconv.l_cache", 3, 2, 64));
  auto part = [&](int64_t number) {
    return builder.linear(input, layer + ".shortconv.in_proj", width,
                          RowView::together(number * width, width, 3 * width));
  };
  Value b = part(0), c = part(1), x = part(2);
  Value y = convolution(builder, layer, layer + ".shortconv.conv.weight", taps, /*silu=*/false,
                        builder.mul(b, x));
  return builder.linear(builder.mul(c, y), layer + ".shortconv.out_proj", width);
}

std::vector<bool> recurrentLayers(ModelBuilder &builder, const Hyper &hyper) {
  int64_t interval =
      int64_t(builder.number(hyper.prefix + "full_attention_interval", 4, 1, 1 << 12));
  std::vector<int64_t> named =
      builder.layerNumbers(hyper.prefix + "attention.recurrent_layers", hyper.layers, -1);
  std::vector<bool> recurrent;
  for (int64_t i = 0; i < hyper.layers; ++i)
    recurrent.push_back(named[i] < 0 ? (i + 1) % interval != 0 : named[i] != 0);
  return recurrent;
}

void deltaKeys(FolderKeys &keys) {
  keys.assume("partial_rotary_factor", Json::of(0.25));
  sizeKeys(keys);
  ropeKeys(keys);
  if (!keys.flag("attn_output_gate").value_or(true))
    keys.refuse("attn_output_gate", "is false, but only attention with gates can be compiled");
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
  if (!recurrent.empty())
    keys.set("attention.recurrent_layers", recurrent, "layer_types");
}

DeltaStyle readDeltaStyle(ModelBuilder &builder, const Hyper &hyper) {
  auto number = [&](const char *name, uint64_t high) {
    return int64_t(builder.unwrap<uint64_t>(
        builder.source().requireUInt(hyper.prefix + "ssm." + name, 1, high), 1));
  };
  DeltaStyle style{};
  style.keyHeads = number("group_count", 1 << 14);
  style.keyDim = number("state_size", 1 << 12);
  style.valueHeads = number("time_step_rank", 1 << 14);
  style.taps = number("conv_kernel", 64);
  int64_t inner = number("inner_size", 1 << 20);
  style.valueDim = std::max<int64_t>(inner / style.valueHeads, 1);
  if (inner % style.valueHeads != 0 || style.valueHeads % style.keyHeads != 0 || style.taps < 2)
    builder.fail(makeError("{0}: {1} values in {2} heads of values for {3} heads of keys, and a "
                           "convolution over {4} tokens; expected multiples in this order, and at "
                           "least 2 tokens",
                           builder.source().fileName(), inner, style.valueHeads, style.keyHeads,
                           style.taps));
  return style;
}

Value deltaAttention(ModelBuilder &builder, const Hyper &hyper, const std::string &layer,
                     const DeltaStyle &style, Value input) {
  int64_t heads = style.valueHeads, inner = heads * style.valueDim;
  int64_t mixedWidth = 2 * style.keyHeads * style.keyDim + inner;
  Value mixed = builder.linear(input, layer + ".attn_qkv", mixedWidth);
  Value gate = builder.linear(input, layer + ".attn_gate", inner);
  Value decay, beta;
  if (std::string both = layer + ".ssm_ba"; builder.hasTensor(both + ".weight")) {
    int64_t group = heads / style.keyHeads;
    auto part = [&](int64_t first) {
      return builder.linear(input, both, heads, RowView{first, group, 2 * group, 2 * heads});
    };
    beta = part(0);
    decay = part(group);
  } else {
    beta = builder.linear(input, layer + ".ssm_beta", heads);
    decay = builder.linear(input, layer + ".ssm_alpha", heads);
  }
  mixed =
      convolution(builder, layer, layer + ".ssm_conv1d.weight", style.taps, /*silu=*/true, mixed);
  auto type = lm::DeltaStateType::get(builder.context(), heads, style.keyDim, style.valueDim);
  Value state = builder.state(layer + ".memory", type);
  Value rate = builder.vector(layer + ".ssm_a", heads);
  Value bias = builder.vector(layer + ".ssm_dt.bias", heads);
  auto op = builder.create<lm::DeltaRuleOp>(
      mlir::TypeRange{lm::rowsType(builder.context(), inner), type}, mixed, decay, beta, rate, bias,
      state, uint64_t(style.keyHeads), llvm::APFloat(1e-6f), style.tiled);
  Value rows = builder.rmsNorm(op.getResult(), layer + ".ssm_norm", style.valueDim, hyper.eps);
  Value open = builder.create<lm::SiluOp>(gate.getType(), gate);
  return builder.linear(builder.mul(rows, open), layer + ".ssm_out", hyper.embedding);
}

DecoderStyle deltaDecoder(ModelBuilder &builder, const Hyper &hyper, bool tiled) {
  DecoderStyle style;
  style.feedForwardNorm = ".post_attention_norm";
  style.attention.headNorms = HeadNorms::Heads;
  style.attention.gated = true;
  style.attention.angles = ropeAngles(builder, hyper);
  DeltaStyle delta = readDeltaStyle(builder, hyper);
  delta.tiled = tiled;
  std::vector<bool> recurrent = recurrentLayers(builder, hyper);
  style.mixer = [&builder, hyper, delta, recurrent](int64_t i, const std::string &layer,
                                                    Value input) {
    return recurrent[i] ? deltaAttention(builder, hyper, layer, delta, input) : Value();
  };
  return style;
}

namespace {

// Rows of the matrix that holds, for one key head after the other, the query, the
// key, and values and gates of its value heads. All queries come first, then all keys.
struct GroupedRows {
  int64_t keyHeads, keyDim, groupWidth;

  static llvm::Expected<GroupedRows> read(const FolderSource &source, int64_t count) {
    constexpr llvm::StringRef names[] = {"linear_num_key_heads", "linear_key_head_dim",
                                         "linear_num_value_heads", "linear_value_head_dim"};
    int64_t sizes[4];
    for (auto [size, name] : llvm::zip(sizes, names)) {
      auto found = source.count(name);
      if (!found)
        return found.takeError();
      size = *found;
    }
    GroupedRows rows;
    rows.keyHeads = sizes[0];
    rows.keyDim = sizes[1];
    int64_t values = sizes[2] * sizes[3];
    rows.groupWidth = rows.keyHeads > 0 ? values / rows.keyHeads : 0;
    if (rows.keyHeads < 1 || rows.keyHeads * rows.width() != count)
      return makeError("{0}/config.json: {1} key heads of {2} values with {3} values each need {4} "
                       "rows of in_proj_qkvz.weight, but it has {5}",
                       source.fileName(), rows.keyHeads, rows.keyDim, rows.groupWidth,
                       rows.keyHeads * rows.width(), count);
    return rows;
  }

  int64_t width() const { return 2 * (keyDim + groupWidth); }

  void add(std::vector<int64_t> &indices, int64_t first, int64_t run) const {
    for (int64_t head = 0; head < keyHeads; ++head)
      for (int64_t i = 0; i < run; ++i)
        indices.push_back(head * width() + first + i);
  }
};

llvm::Expected<std::vector<int64_t>> mixedRows(const FolderSource &source, int64_t count) {
  auto rows = GroupedRows::read(source, count);
  if (!rows)
    return rows.takeError();
  std::vector<int64_t> indices;
  rows->add(indices, 0, rows->keyDim);
  rows->add(indices, rows->keyDim, rows->keyDim);
  rows->add(indices, 2 * rows->keyDim, rows->groupWidth);
  return indices;
}

llvm::Expected<std::vector<int64_t>> gateRows(const FolderSource &source, int64_t count) {
  auto rows = GroupedRows::read(source, count);
  if (!rows)
    return rows.takeError();
  std::vector<int64_t> indices;
  rows->add(indices, 2 * rows->keyDim + rows->groupWidth, rows->groupWidth);
  return indices;
}

} // namespace

llvm::ArrayRef<TensorRule> deltaTensors() {
  static constexpr TensorRule rules[] = {
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
      {"blk.*.attn_qkv.weight", "model.layers.*.linear_attn.in_proj_qkvz.weight", Change::None,
       mixedRows},
      {"blk.*.attn_gate.weight", "model.layers.*.linear_attn.in_proj_qkvz.weight", Change::None,
       gateRows},
      {"blk.*.ssm_ba.weight", "model.layers.*.linear_attn.in_proj_ba.weight"},
      {"blk.*.ssm_conv1d.weight", "model.layers.*.linear_attn.conv1d.weight"},
      {"blk.*.ssm_a", "model.layers.*.linear_attn.A_log", Change::NegativeExp},
      {"blk.*.ssm_dt.bias", "model.layers.*.linear_attn.dt_bias"},
      {"blk.*.ssm_norm.weight", "model.layers.*.linear_attn.norm.weight"},
      {"blk.*.ssm_out.weight", "model.layers.*.linear_attn.out_proj.weight"},
      // Prediction of further tokens is not compiled.
      {"", "mtp.**"},
  };
  return rules;
}

} // namespace izhc
