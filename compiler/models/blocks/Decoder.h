// The blocks of decoder-only transformers, and the usual way to put them
// together: attention and a gated feed-forward part, each added to what came
// before.

#pragma once

#include "compiler/models/Model.h"
#include "compiler/models/blocks/Experts.h"
#include "compiler/models/blocks/Hyper.h"
#include <functional>

namespace izhc {

enum class HeadNorms {
  None,
  Heads, // of each head
  Whole, // of all heads together
};

struct AttentionStyle {
  lm::RopeStyle rope = lm::RopeStyle::Halves;
  // The angles that queries and keys are turned by; null: not at all.
  mlir::Value angles;
  // Other angles for queries, or null.
  mlir::Value queryAngles;
  // Of the query, key and value products.
  Bias bias = Bias::Optional;
  // RMS norms of queries and keys, before they are turned.
  HeadNorms headNorms = HeadNorms::None;
  // Whether attn_q holds a gate behind each head's query: what attention gives
  // is multiplied by its sigmoid.
  bool gated = false;
  // Of the products of queries and keys; 0: 1 / sqrt(head's size).
  float scale = 0;
  // How many tokens back a token sees, itself among them; 0: all.
  int64_t window = 0;
  // What caps these products, see lm.attention; 0: nothing.
  float cap = 0;
  // Whether attn_sinks holds a sink for each head.
  bool sinks = false;
  // Norms without weights of the heads of values.
  bool valueNorms = false;
  // Whether the product of keys is that of values too; the norms differ.
  bool keysAsValues = false;
  // The cache of an earlier layer, which takes the place of keys and values of
  // the layer's own; null: it has its own.
  mlir::Value sharedCache;
  // Where the layer's own cache is put for later layers; may be null.
  mlir::Value *keepsCache = nullptr;
};

enum class Gating { Silu, Gelu };

struct DecoderStyle {
  AttentionStyle attention;
  // Changes the style for one layer.
  std::function<void(int64_t layer, AttentionStyle &)> ofLayer;
  // Changes the sizes for one layer where layers differ.
  std::function<void(int64_t layer, Hyper &)> sizesOfLayer;
  // Told the scaled embeddings, before the first layer.
  std::function<void(mlir::Value rows)> atStart;
  // What a layer does with its rows at its end, after the feed-forward part.
  std::function<mlir::Value(int64_t number, const std::string &layer, mlir::Value rows)> atEnd;
  // Another block in the place of attention, or null for layers without one.
  // `layer` is "blk.N", `input` are normed rows.
  std::function<mlir::Value(int64_t number, const std::string &layer, mlir::Value input)> mixer;
  // Whether layers have windows of attention.sliding_window tokens; otherwise
  // such a file is refused.
  bool windows = false;
  // The same for attn_logit_softcapping.
  bool caps = false;
  Gating gating = Gating::Silu;
  // Norms before attention and feed-forward part, and behind them.
  bool normsBefore = true, normsBehind = false;
  float embeddingScale = 1, residualScale = 1, logitScale = 1;
  const char *outputNorm = "output_norm";
  const char *feedForwardNorm = ".ffn_norm"; // the one before it
  // How layers that have a router choose experts; without, a file with experts
  // is refused.
  std::optional<Routing> routing;
};

// `input` are normed rows; `layer` is "blk.N". Uses attn_q, attn_k, attn_v (or
// attn_qkv, where they are stored together) and attn_output, and attn_q_norm
// and attn_k_norm, of the layer and its cache.
mlir::Value attention(ModelBuilder &builder, const Hyper &hyper, const std::string &layer,
                      const AttentionStyle &style, mlir::Value input);

// down(gating(gate(x)) * up(x)) with ffn_gate, ffn_up and ffn_down of the layer;
// without ffn_gate, ffn_up holds both, the gate first.
mlir::Value gatedMlp(ModelBuilder &builder, const Hyper &hyper, const std::string &layer,
                     mlir::Value input, Gating gating = Gating::Silu);

// Rows of token_embd.weight.
mlir::Value embedding(ModelBuilder &builder, const Hyper &hyper);

// The logits of the rows asked for: the norm, then output.weight or, where
// the file has none, token_embd.weight; capped where the model says so.
mlir::Value output(ModelBuilder &builder, const Hyper &hyper, mlir::Value input,
                   const DecoderStyle &style = {});

// Fills `facts` with what `hyper` says.
void describe(const Hyper &hyper, ModelFacts &facts);

// A whole model of these blocks; fills `facts`. `makeStyle` may append ops, and
// change numbers that mean something else in its architecture.
mlir::Value decoder(ModelBuilder &builder, llvm::StringRef architecture, ModelFacts &facts,
                    llvm::function_ref<DecoderStyle(Hyper &)> makeStyle,
                    LayerSizes sizes = LayerSizes::Equal);

} // namespace izhc
