// Attention, gated feed-forward, embedding and output, and the usual way to
// put them together. The logits are asked for last, over all rows; passes move
// the selection of rows ahead of the products.

#include "compiler/models/blocks/Decoder.h"
#include "compiler/models/blocks/Rope.h"
#include <cmath>

namespace izhc {

using mlir::Value;

Value attention(ModelBuilder &builder, const Hyper &hyper, const std::string &layer,
                const AttentionStyle &style, Value angles, Value input) {
  int64_t dim = hyper.headDim;
  Value q = builder.linear(input, layer + ".attn_q", hyper.heads * dim, style.bias);
  Value k = builder.linear(input, layer + ".attn_k", hyper.kvHeads * dim, style.bias);
  Value v = builder.linear(input, layer + ".attn_v", hyper.kvHeads * dim, style.bias);
  if (style.headNorms) {
    q = builder.rmsNorm(q, layer + ".attn_q_norm", dim, hyper.eps);
    k = builder.rmsNorm(k, layer + ".attn_k_norm", dim, hyper.eps);
  }
  q = builder.create<lm::RopeOp>(q.getType(), q, angles, style.rope, uint64_t(dim));
  k = builder.create<lm::RopeOp>(k.getType(), k, angles, style.rope, uint64_t(dim));
  Value cache = builder.state(layer + ".cache", hyper.kvHeads, dim);
  cache = builder.create<lm::AppendOp>(cache.getType(), cache, k, v);
  float scale = 1.0f / std::sqrt(float(dim));
  Value rows = builder.create<lm::AttentionOp>(q.getType(), q, cache, uint64_t(hyper.heads),
                                               llvm::APFloat(scale));
  return builder.linear(rows, layer + ".attn_output", hyper.embedding);
}

Value gatedMlp(ModelBuilder &builder, const Hyper &hyper, const std::string &layer, Value input) {
  Value gate = builder.linear(input, layer + ".ffn_gate", hyper.feedForward);
  Value up = builder.linear(input, layer + ".ffn_up", hyper.feedForward);
  Value silu = builder.create<lm::SiluOp>(gate.getType(), gate);
  Value product = builder.create<lm::MulOp>(gate.getType(), silu, up);
  return builder.linear(product, layer + ".ffn_down", hyper.embedding);
}

Value embedding(ModelBuilder &builder, const Hyper &hyper) {
  Value ids = builder.input(lm::InputKind::Ids);
  Value weight = builder.matrix("token_embd.weight", hyper.vocabulary, hyper.embedding);
  return builder.create<lm::EmbedOp>(lm::rowsType(builder.context(), hyper.embedding), ids, weight);
}

Value output(ModelBuilder &builder, const Hyper &hyper, Value input) {
  Value norm = builder.rmsNorm(input, "output_norm", hyper.embedding, hyper.eps);
  const char *name = builder.hasTensor("output.weight") ? "output" : "token_embd";
  Value logits = builder.linear(norm, name, hyper.vocabulary);
  Value rows = builder.input(lm::InputKind::OutputRows);
  return builder.create<lm::SelectRowsOp>(logits.getType(), logits, rows);
}

Value decoder(ModelBuilder &builder, llvm::StringRef architecture, const AttentionStyle &style,
              ModelFacts &facts) {
  builder.describe("embedding");
  Hyper hyper = readHyper(builder, architecture);
  if (builder.failed())
    return {};
  facts.vocabulary = hyper.vocabulary;
  facts.context = hyper.context;
  facts.embedding = hyper.embedding;
  facts.layers = hyper.layers;
  Value x = embedding(builder, hyper);
  Value angles = ropeAngles(builder, hyper);
  for (int64_t i = 0; i < hyper.layers && !builder.failed(); ++i) {
    std::string layer = "blk." + std::to_string(i);
    builder.describe(layer);
    // Old files carry the frequencies, which are computed here.
    builder.markUsed(layer + ".attn_rot_embd.weight");
    Value norm = builder.rmsNorm(x, layer + ".attn_norm", hyper.embedding, hyper.eps);
    x = builder.add(x, attention(builder, hyper, layer, style, angles, norm));
    norm = builder.rmsNorm(x, layer + ".ffn_norm", hyper.embedding, hyper.eps);
    x = builder.add(x, gatedMlp(builder, hyper, layer, norm));
  }
  builder.describe("output");
  return output(builder, hyper, x);
}

} // namespace izhc
