// Attention, gated feed-forward, embedding and output, and the usual way to
// put them together. The logits are asked for last, over all rows; passes move
// the selection of rows ahead of the products.

#include "compiler/models/blocks/Decoder.h"
#include "compiler/models/blocks/Rope.h"
#include "compiler/support/Numbers.h"
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
  if (builder.hasTensor(fused + ".weight")) {
    auto part = [&](int64_t first, int64_t rows) {
      return builder.linear(input, fused, rows, RowView::together(first, rows, q + 2 * kv));
    };
    return {part(0, q), part(q, kv), part(q + kv, kv)};
  }
  Projections made{builder.linear(input, layer + ".attn_q", q, bias), {}, {}};
  if (style.sharedCache)
    return made;
  made.k = builder.linear(input, layer + ".attn_k", kv, bias);
  made.v = style.keysAsValues ? made.k : builder.linear(input, layer + ".attn_v", kv, bias);
  return made;
}

// Heads of queries or keys, normed and turned as the style says.
Value position(ModelBuilder &builder, const Hyper &hyper, const std::string &norm,
               const AttentionStyle &style, Value angles, Value rows) {
  if (style.headNorms != HeadNorms::None) {
    bool whole = style.headNorms == HeadNorms::Whole;
    rows = builder.rmsNorm(rows, norm, whole ? lm::widthOf(rows) : hyper.headDim, hyper.eps);
  }
  if (!angles)
    return rows;
  return builder.create<lm::RopeOp>(rows.getType(), rows, angles, style.rope,
                                    uint64_t(hyper.headDim));
}

// The layer's own cache, with this step's keys and values behind the old ones.
Value append(ModelBuilder &builder, const Hyper &hyper, const std::string &layer,
             const AttentionStyle &style, Value k, Value v) {
  k = position(builder, hyper, layer + ".attn_k_norm", style, style.angles, k);
  if (style.valueNorms)
    v = builder.create<lm::RmsNormOp>(v.getType(), v, Value(), uint64_t(hyper.headDim),
                                      llvm::APFloat(hyper.eps));
  Value cache = builder.state(layer + ".cache", hyper.kvHeads, hyper.headDim);
  cache = builder.create<lm::AppendOp>(cache.getType(), cache, k, v);
  if (style.keepsCache)
    *style.keepsCache = cache;
  return cache;
}

Value bend(ModelBuilder &builder, Gating gating, Value gate) {
  if (gating == Gating::Gelu)
    return builder.create<lm::GeluOp>(gate.getType(), gate);
  return builder.create<lm::SiluOp>(gate.getType(), gate);
}

} // namespace

Value attention(ModelBuilder &builder, const Hyper &hyper, const std::string &layer,
                const AttentionStyle &style, Value input) {
  auto [q, k, v, gate] = project(builder, hyper, layer, style, input);
  q = position(builder, hyper, layer + ".attn_q_norm", style,
               style.queryAngles && style.angles ? style.queryAngles : style.angles, q);
  Value cache = style.sharedCache ? style.sharedCache : append(builder, hyper, layer, style, k, v);
  float scale = style.scale != 0 ? style.scale : 1.0f / std::sqrt(float(hyper.headDim));
  Value sinks = style.sinks ? builder.vector(layer + ".attn_sinks.weight", hyper.heads) : Value();
  Value rows = builder.create<lm::AttentionOp>(q.getType(), q, cache, sinks, uint64_t(hyper.heads),
                                               llvm::APFloat(scale), uint64_t(style.window),
                                               llvm::APFloat(style.cap));
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
  facts.context = facts.longest = hyper.context;
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
    builder.fail(makeError("{0} is {1}: a mixture of experts can't be compiled for this "
                           "architecture yet",
                           builder.source().keyPlace(hyper.prefix + "expert_count"),
                           experts.count));
  return experts;
}

static Value decoderLayer(ModelBuilder &builder, const Hyper &hyper, const DecoderStyle &style,
                          const Experts &experts, int64_t number, Value x) {
  std::string layer = "blk." + std::to_string(number);
  // Old files carry the frequencies, which are computed here.
  builder.markUsed(layer + ".attn_rot_embd.weight");
  AttentionStyle attentionStyle = style.attention;
  if (style.ofLayer)
    style.ofLayer(number, attentionStyle);
  auto before = [&](const char *name) {
    return style.normsBefore ? builder.rmsNorm(x, layer + name, hyper.embedding, hyper.eps) : x;
  };
  auto behind = [&](Value y, const char *name) {
    std::string norm = layer + name;
    x = addNormed(builder, hyper, x, y, style.normsBehind ? &norm : nullptr, style.residualScale);
  };
  Value normed = before(".attn_norm");
  Value mixed = style.mixer ? style.mixer(number, layer, normed) : Value();
  if (!mixed)
    mixed = attention(builder, hyper, layer, attentionStyle, normed);
  behind(mixed, ".post_attention_norm");
  Value input = before(style.feedForwardNorm);
  llvm::SmallVector<Value, 2> parts;
  if (experts.count == 0 || !isMixture(builder, layer))
    parts = {gatedMlp(builder, hyper, layer, input, style.gating)};
  else
    parts = mixture(builder, experts, layer, input);
  // Parts that no norm joins are added one by one, each in place.
  if (style.normsBehind && parts.size() > 1)
    parts = {builder.add(parts[0], parts[1])};
  for (Value part : parts)
    behind(part, ".post_ffw_norm");
  return style.atEnd ? style.atEnd(number, layer, x) : x;
}

// What the layers' attention would leave out.
static void refuseOtherAttention(ModelBuilder &builder, const Hyper &hyper,
                                 const DecoderStyle &style) {
  if (hyper.window != 0 && !style.windows)
    builder.fail(makeError("{0} is {1}: attention to a window of tokens can't be compiled for this "
                           "architecture yet",
                           builder.source().keyPlace(hyper.prefix + "attention.sliding_window"),
                           hyper.window));
  if (hyper.attentionCap != 0 && !style.caps)
    builder.fail(makeError("{0} is {1}: capped attention can't be compiled for this architecture "
                           "yet",
                           builder.source().keyPlace(hyper.prefix + "attn_logit_softcapping"),
                           shortText(hyper.attentionCap)));
}

Value decoder(ModelBuilder &builder, llvm::StringRef architecture, ModelFacts &facts,
              llvm::function_ref<DecoderStyle(Hyper &)> makeStyle, LayerSizes sizes) {
  builder.describe("embedding");
  Hyper hyper = readHyper(builder, architecture, sizes);
  if (builder.failed())
    return {};
  describe(hyper, facts);
  facts.context = ropeContext(builder, hyper);
  DecoderStyle style = makeStyle(hyper);
  refuseOtherAttention(builder, hyper, style);
  Experts experts = readStyledExperts(builder, hyper, style);
  Value x = builder.scale(embedding(builder, hyper), style.embeddingScale);
  if (style.atStart)
    style.atStart(x);
  for (int64_t i = 0; i < hyper.layers && !builder.failed(); ++i) {
    builder.describe("blk." + std::to_string(i));
    Hyper sizes = hyper;
    if (style.sizesOfLayer)
      style.sizesOfLayer(i, sizes);
    x = decoderLayer(builder, sizes, style, experts, i, x);
  }
  builder.describe("output");
  return output(builder, hyper, x, style);
}

} // namespace izhc
