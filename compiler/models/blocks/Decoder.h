// The blocks of decoder-only transformers with norms before attention and
// before the gated feed-forward part.

#pragma once

#include "compiler/models/Model.h"
#include "compiler/models/blocks/Hyper.h"

namespace izhc {

struct AttentionStyle {
  lm::RopeStyle rope = lm::RopeStyle::Halves;
  // Of the query, key and value products.
  Bias bias = Bias::Optional;
  // RMS norms of each head of queries and keys, before they are turned.
  bool headNorms = false;
};

// `input` are normed rows; `layer` is "blk.N". Uses attn_q, attn_k, attn_v and
// attn_output (and attn_q_norm, attn_k_norm) of the layer and its cache.
mlir::Value attention(ModelBuilder &builder, const Hyper &hyper, const std::string &layer,
                      const AttentionStyle &style, mlir::Value angles, mlir::Value input);

// down(silu(gate(x)) * up(x)) with ffn_gate, ffn_up and ffn_down of the layer.
mlir::Value gatedMlp(ModelBuilder &builder, const Hyper &hyper, const std::string &layer,
                     mlir::Value input);

// Rows of token_embd.weight.
mlir::Value embedding(ModelBuilder &builder, const Hyper &hyper);

// The logits of the rows asked for: output_norm, then output.weight or, where
// the file has none, token_embd.weight.
mlir::Value output(ModelBuilder &builder, const Hyper &hyper, mlir::Value input);

// A whole model of these blocks; fills `facts`.
mlir::Value decoder(ModelBuilder &builder, llvm::StringRef architecture,
                    const AttentionStyle &style, ModelFacts &facts);

} // namespace izhc
