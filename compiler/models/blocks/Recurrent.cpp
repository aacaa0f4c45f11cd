// The ops of short convolutions and of the gated delta rule.

#include "compiler/models/blocks/Recurrent.h"
#include "compiler/models/blocks/Rope.h"

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

} // namespace izhc
