// Attention, gated feed-forward, embedding and output, and the usual way to
// put them together. The logits are asked for last, over all rows; passes move
// the selection of rows ahead of the products.

#include "compiler/models/blocks/Decoder.h"
#include "compiler/models/blocks/Rope.h"
#include <cmath>

namespace izhc {

using mlir::Value;

namespace {

struct Projections {
  Value q, k, v;
  Value gate = {};
};

Projections project(ModelBuilder &builder, const Hyper &hyper, const std::string &layer,
                    const AttentionStyle &style, Value input) {
  int64_t dim = hyper.headDim, q = hyper.heads * dim, kv = hyper.kvHeads * dim;
  Bias bias = style.bias;
  if (style.gated) {
    auto half = [&](int64_t first) {
      return builder.linear(input, layer + ".attn_q", q, RowView{first, dim, 2 * dim, 2 * q});
    };
    return {half(0), builder.linear(input, layer + ".attn_k", kv, bias),
            builder.linear(input, layer + ".attn_v", kv, bias), half(dim)};
  }
  std::string fused = layer + ".attn_qkv";
  if (!builder.hasTensor(fused + ".weight"))
    return {builder.linear(input, layer + ".attn_q", q, bias),
            builder.linear(input, layer + ".attn_k", kv, bias),
            builder.linear(input, layer + ".attn_v", kv, bias)};
  auto part = [&](int64_t first, int64_t rows) {
    return builder.linear(input, fused, rows, RowView::together(first, rows, q + 2 * kv));
  };
  return {part(0, q), part(q, kv), part(q + kv, kv)};
}

Value bend(ModelBuilder &builder, Gating gating, Value gate) {
  if (gating == Gating::Gelu)
    return builder.create<lm::GeluOp>(gate.getType(), gate);
  return builder.create<lm::SiluOp>(gate.getType(), gate);
}

} // namespace

Value attention(ModelBuilder &builder, const Hyper &hyper, const std::string &layer,
                const AttentionStyle &style, Value input) {
  int64_t dim = hyper.headDim;
  auto [q, k, v, gate] = project(builder, hyper, layer, style, input);
  if (style.headNorms != HeadNorms::None) {
    bool whole = style.headNorms == HeadNorms::Whole;
    q = builder.rmsNorm(q, layer + ".attn_q_norm", whole ? lm::widthOf(q) : dim, hyper.eps);
    k = builder.rmsNorm(k, layer + ".attn_k_norm", whole ? lm::widthOf(k) : dim, hyper.eps);
  }
  if (style.angles) {
    Value angles = style.queryAngles ? style.queryAngles : style.angles;
    q = builder.create<lm::RopeOp>(q.getType(), q, angles, style.rope, uint64_t(dim));
    k = builder.create<lm::RopeOp>(k.getType(), k, style.angles, style.rope, uint64_t(dim));
  }
  Value cache = builder.state(layer + ".cache", hyper.kvHeads, dim);
  cache = builder.create<lm::AppendOp>(cache.getType(), cache, k, v);
  float scale = style.scale != 0 ? style.scale : 1.0f / std::sqrt(float(dim));
  Value sinks = style.sinks ? builder.vector(layer + ".attn_sinks.weight", hyper.heads) : Value();
  Value rows = builder.create<lm::AttentionOp>(q.getType(), q, cache, sinks, uint64_t(hyper.heads),
                                               llvm::APFloat(scale), uint64_t(style.window),
                                               llvm::APFloat(0.0f));
  if (gate)
    rows = builder.mul(rows, builder.create<lm::SigmoidOp>(gate.getType(), gate));
  return builder.linear(rows, layer + ".attn_output", hyper.embedding);
}

Value gatedMlp(ModelBuilder &builder, const Hyper &hyper, const std::string &layer, Value input,
               Gating gating) {
  int64_t width = hyper.feedForward;
  Value gate, up;
  const TensorInfo *both = builder.source().findTensor(layer + ".ffn_up.weight");
  bool together =
      both && both->rows() == 2 * width && !builder.hasTensor(layer + ".ffn_gate.weight");
  if (!together) {
    gate = builder.linear(input, layer + ".ffn_gate", width);
    up = builder.linear(input, layer + ".ffn_up", width);
  } else {
    auto part = [&](int64_t first) {
      return builder.linear(input, layer + ".ffn_up", width,
                            RowView::together(first, width, 2 * width));
    };
    gate = part(0);
    up = part(width);
  }
  Value product = builder.mul(bend(builder, gating, gate), up);
  return builder.linear(product, layer + ".ffn_down", hyper.embedding);
}

Value embedding(ModelBuilder &builder, const Hyper &hyper) {
  Value ids = builder.input(lm::InputKind::Ids);
  Value weight = builder.matrix("token_embd.weight", hyper.vocabulary, hyper.embedding);
  return builder.create<lm::EmbedOp>(lm::rowsType(builder.context(), hyper.embedding), ids, weight);
}

Value output(ModelBuilder &builder, const Hyper &hyper, Value input, const DecoderStyle &style) {
  Value norm = builder.rmsNorm(input, style.outputNorm, hyper.embedding, hyper.eps);
  const char *name = builder.hasTensor("output.weight") ? "output" : "token_embd";
  Value logits = builder.scale(builder.linear(norm, name, hyper.vocabulary), style.logitScale);
  if (hyper.logitCap > 0)
    logits = builder.create<lm::SoftCapOp>(logits.getType(), logits, llvm::APFloat(hyper.logitCap));
  Value rows = builder.input(lm::InputKind::OutputRows);
  return builder.create<lm::SelectRowsOp>(logits.getType(), logits, rows);
}

void describe(const Hyper &hyper, ModelFacts &facts) {
  facts.vocabulary = hyper.vocabulary;
  facts.context = hyper.context;
  facts.embedding = hyper.embedding;
  facts.layers = hyper.layers;
}

// x + scale * norm(y), with the norm NAME.weight if `name` is not null.
static Value addNormed(ModelBuilder &builder, const Hyper &hyper, Value x, Value y,
                       const std::string *name, float scale) {
  if (name)
    y = builder.rmsNorm(y, *name, hyper.embedding, hyper.eps);
  return builder.add(x, builder.scale(y, scale));
}

static Experts readStyledExperts(ModelBuilder &builder, const Hyper &hyper,
                                 const DecoderStyle &style) {
  Experts experts = readExperts(builder, hyper, style.routing.value_or(Routing()));
  if (experts.count != 0 && !style.routing)
    builder.fail(makeError("{0}: {1}expert_count is {2}: a mixture of experts can't be compiled "
                           "for this architecture yet",
                           builder.source().fileName(), hyper.prefix, experts.count));
  return experts;
}

Value decoder(ModelBuilder &builder, llvm::StringRef architecture, ModelFacts &facts,
              llvm::function_ref<DecoderStyle(const Hyper &)> makeStyle) {
  builder.describe("embedding");
  Hyper hyper = readHyper(builder, architecture);
  if (builder.failed())
    return {};
  describe(hyper, facts);
  facts.context = ropeContext(builder, hyper);
  DecoderStyle style = makeStyle(hyper);
  if (hyper.window != 0 && !style.windows)
    builder.fail(makeError("{0}: {1}attention.sliding_window is {2}: attention to a window of "
                           "tokens can't be compiled for this architecture yet",
                           builder.source().fileName(), hyper.prefix, hyper.window));
  Experts experts = readStyledExperts(builder, hyper, style);
  Value x = builder.scale(embedding(builder, hyper), style.embeddingScale);
  for (int64_t i = 0; i < hyper.layers && !builder.failed(); ++i) {
    std::string layer = "blk." + std::to_string(i);
    builder.describe(layer);
    // Old files carry the frequencies, which are computed here.
    builder.markUsed(layer + ".attn_rot_embd.weight");
    AttentionStyle attentionStyle = style.attention;
    if (style.ofLayer)
      style.ofLayer(i, attentionStyle);
    auto before = [&](const char *name) {
      return style.normsBefore ? builder.rmsNorm(x, layer + name, hyper.embedding, hyper.eps) : x;
    };
    auto behind = [&](Value y, const char *name) {
      std::string norm = layer + name;
      x = addNormed(builder, hyper, x, y, style.normsBehind ? &norm : nullptr, style.residualScale);
    };
    Value normed = before(".attn_norm");
    Value mixed = style.mixer ? style.mixer(i, layer, normed) : Value();
    if (!mixed)
      mixed = attention(builder, hyper, layer, attentionStyle, normed);
    behind(mixed, ".post_attention_norm");
    Value input = before(style.feedForwardNorm);
    if (experts.count == 0 || !isMixture(builder, layer)) {
      behind(gatedMlp(builder, hyper, layer, input, style.gating), ".post_ffw_norm");
      continue;
    }
    // Parts that no norm joins are added one by one, each in place.
    llvm::SmallVector<Value, 2> parts = mixture(builder, experts, layer, input);
    if (style.normsBehind && parts.size() > 1)
      parts = {builder.add(parts[0], parts[1])};
    for (Value part : parts)
      behind(part, ".post_ffw_norm");
  }
  builder.describe("output");
  return output(builder, hyper, x, style);
}

} // namespace izhc
