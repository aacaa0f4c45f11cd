// Blocks with states of fixed size in the place of attention.

#pragma once

#include "compiler/models/blocks/Decoder.h"

namespace izhc {

// A short convolution between two gates: with b, c, x the three parts of
// shortconv.in_proj, shortconv.out_proj(c * conv(b * x)). `input` are normed rows.
mlir::Value gatedConvolution(ModelBuilder &builder, const Hyper &hyper, const std::string &layer,
                             mlir::Value input);

// The numbers of a layer of linear attention with the gated delta rule.
struct DeltaStyle {
  int64_t keyHeads, keyDim, valueHeads, valueDim, taps;
  // Key head of a value head h: h % keyHeads, not h / (valueHeads / keyHeads).
  bool tiled = false;
};

// Which layers are recurrent: attention.recurrent_layers, or all but every
// full_attention_interval-th (by default the fourth).
std::vector<bool> recurrentLayers(ModelBuilder &builder, const Hyper &hyper);

// The keys of both, from a folder's.
void deltaKeys(FolderKeys &keys);

// What published folders call the norms and the tensors of such layers. Grouped: two
// projections that hold queries, keys, values and gates (shares and decays) of one
// key head after the other. Tiled: four, whose value heads are put in that order.
llvm::ArrayRef<TensorRule> groupedDeltaTensors();
llvm::ArrayRef<TensorRule> tiledDeltaTensors();

// Reads ssm.group_count, ssm.state_size, ssm.time_step_rank, ssm.inner_size and
// ssm.conv_kernel.
DeltaStyle readDeltaStyle(ModelBuilder &builder, const Hyper &hyper);

// Queries, keys and values of attn_qkv pass a short convolution with silu, then
// the gated delta rule; its heads are normed, gated by silu(attn_gate) and go
// through ssm_out. Decays and shares come from ssm_alpha and ssm_beta, or from
// ssm_ba, which holds both for each key head, shares first.
mlir::Value deltaAttention(ModelBuilder &builder, const Hyper &hyper, const std::string &layer,
                           const DeltaStyle &style, mlir::Value input);

// A decoder of them, and of attention with normed and gated heads in the layers
// that aren't recurrent. `tiled`: as in DeltaStyle.
DecoderStyle deltaDecoder(ModelBuilder &builder, const Hyper &hyper, bool tiled);

} // namespace izhc
