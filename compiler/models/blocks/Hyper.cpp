// Reads and checks the hyper-parameters that all decoders share. The upper
// bounds keep products within int64_t and refuse what no machine could hold.

#include "compiler/models/blocks/Hyper.h"
#include "compiler/support/Numbers.h"
#include <cmath>

namespace izhc {

// A number, or an array (one entry a layer) whose entries are all equal, but for
// zeros where layers are of another kind; or the greatest of those that differ.
static llvm::Expected<uint64_t> numberOfLayers(const ModelSource &source, const std::string &key,
                                               LayerSizes sizes, uint64_t otherwise,
                                               uint64_t high) {
  bool differ = sizes == LayerSizes::Differ;
  if (!source.isArray(key))
    return source.getUIntOr(key, otherwise, 1, high);
  auto entries = source.getIntArray(key);
  if (!entries)
    return entries.takeError();
  if (!*entries || (*entries)->empty())
    return otherwise;
  int64_t most = *llvm::max_element(**entries);
  for (int64_t entry : **entries)
    if (uint64_t(entry) > high || (entry != most && entry != 0 && !differ) || most == 0)
      return makeError("{0} differs from layer to layer or is out of range; only one value "
                       "from 1 to {1} for all layers can be compiled",
                       source.keyPlace(key), high);
  return uint64_t(most);
}

static void readHeads(ModelBuilder &builder, Hyper &hyper, LayerSizes sizes) {
  const ModelSource &source = builder.source();
  auto number = [&](const char *name, uint64_t otherwise, uint64_t high) {
    return builder.unwrap<uint64_t>(
        numberOfLayers(source, hyper.prefix + name, sizes, otherwise, high), 1);
  };
  hyper.heads = number("attention.head_count", 0, 1 << 14);
  if (hyper.heads == 0) {
    builder.fail(makeError("{0} is missing, which this kind of model needs",
                           source.keyPlace(hyper.prefix + "attention.head_count")));
    hyper.heads = 1;
  }
  hyper.kvHeads = number("attention.head_count_kv", hyper.heads, 1 << 14);
  hyper.headDim = number("attention.key_length", hyper.embedding / hyper.heads, 1 << 12);
  uint64_t valueDim = number("attention.value_length", hyper.headDim, 1 << 12);
  // Latent rows are keys and, but for their ends, values.
  bool latent = source.hasKey(hyper.prefix + "attention.kv_lora_rank");
  if (hyper.headDim == 0 || (uint64_t(hyper.headDim) != valueDim && !latent))
    builder.fail(makeError("{0}: keys of {1} and values of {2} numbers a head; only equal, "
                           "positive sizes can be compiled",
                           source.fileName(), hyper.headDim, valueDim));
  if (hyper.heads % hyper.kvHeads != 0)
    builder.fail(makeError("{0} is {1}, expected a multiple of the {2} heads of keys",
                           source.keyPlace(hyper.prefix + "attention.head_count"), hyper.heads,
                           hyper.kvHeads));
}

// Keys that change what attention computes; leaving them out would give
// another model's text.
static void refuseOtherAttention(ModelBuilder &builder, const Hyper &hyper) {
  const ModelSource &source = builder.source();
  if (!builder.unwrap<bool>(source.getBoolOr(hyper.prefix + "attention.causal", true), true))
    builder.fail(makeError("{0} is false: only models that read from left to right can be compiled",
                           source.keyPlace(hyper.prefix + "attention.causal")));
  for (const char *name : {"attention.clamp_kqv", "attention.max_alibi_bias"}) {
    std::string key = hyper.prefix + name;
    if (double value = builder.unwrap<double>(source.getFloatOr(key, 0), 0); value != 0)
      builder.fail(makeError("{0} is {1}: attention of this kind can't be compiled yet; only 0 can",
                             source.keyPlace(key), shortText(value)));
  }
}

static float readCap(ModelBuilder &builder, const std::string &key) {
  double cap = builder.unwrap<double>(builder.source().getFloatOr(key, 0), 0);
  if (cap == 0 || (cap >= 1e-3 && cap <= 1e6))
    return float(cap);
  builder.fail(makeError("{0} is {1}, expected 0 (no cap) or 0.001 to 1000000",
                         builder.source().keyPlace(key), shortText(cap)));
  return 0;
}

// A token without a row would be an id that the model can't be given. More
// rows than tokens are padding.
static void checkVocabulary(ModelBuilder &builder, int64_t rows) {
  auto tokens = builder.source().getStringArray("tokenizer.ggml.tokens");
  if (!tokens)
    return builder.fail(tokens.takeError());
  if (*tokens && (*tokens)->size() > uint64_t(rows))
    builder.fail(makeError("{0}: tokenizer.ggml.tokens has {1} entries, but token_embd.weight only "
                           "{2} rows; tokenizer and weights are of different models",
                           builder.source().fileName(), (*tokens)->size(), rows));
}

// The last layers of some models only guess tokens further ahead.
static void leaveOutGuesses(ModelBuilder &builder, Hyper &hyper) {
  int64_t count = builder.unwrap<uint64_t>(
      builder.source().getUIntOr(hyper.prefix + "nextn_predict_layers", 0, 0, hyper.layers - 1), 0);
  for (int64_t i = hyper.layers - count; i < hyper.layers; ++i)
    for (const TensorInfo &tensor : builder.source().tensors())
      if (tensor.name.starts_with("blk." + std::to_string(i) + "."))
        builder.markUsed(tensor.name);
  hyper.layers -= count;
}

Hyper readHyper(ModelBuilder &builder, llvm::StringRef architecture, LayerSizes sizes) {
  const ModelSource &source = builder.source();
  Hyper hyper;
  hyper.prefix = (architecture + ".").str();
  auto number = [&](const char *name, uint64_t high) {
    return builder.unwrap<uint64_t>(source.requireUInt(hyper.prefix + name, 1, high), 1);
  };
  hyper.context = number("context_length", 1u << 30);
  hyper.embedding = number("embedding_length", 1 << 20);
  hyper.layers = number("block_count", 1 << 12);
  leaveOutGuesses(builder, hyper);
  // Mixtures without dense layers may tell the width of their experts only.
  uint64_t ofExperts = builder.unwrap<uint64_t>(
      source.getUIntOr(hyper.prefix + "expert_feed_forward_length", 0, 0, 1 << 22), 0);
  hyper.feedForward = builder.unwrap<uint64_t>(
      numberOfLayers(source, hyper.prefix + "feed_forward_length", sizes, ofExperts, 1 << 22), 1);
  if (hyper.feedForward == 0)
    builder.fail(makeError("{0} is missing, which this kind of model needs",
                           source.keyPlace(hyper.prefix + "feed_forward_length")));
  readHeads(builder, hyper, sizes);
  // A window as large as the context hides nothing.
  hyper.window = builder.unwrap<uint64_t>(
      source.getUIntOr(hyper.prefix + "attention.sliding_window", 0, 0, 1u << 30), 0);
  if (hyper.window >= hyper.context)
    hyper.window = 0;
  std::string epsilon = hyper.prefix + "attention.layer_norm_rms_epsilon";
  double eps = builder.unwrap<double>(source.requireFloat(epsilon), 1e-5);
  if (!(eps >= 0 && eps < 1))
    builder.fail(makeError("{0} is {1}, expected a number from 0 to 1", source.keyPlace(epsilon),
                           shortText(eps)));
  hyper.eps = float(eps);
  refuseOtherAttention(builder, hyper);
  hyper.logitCap = readCap(builder, hyper.prefix + "final_logit_softcapping");
  hyper.attentionCap = readCap(builder, hyper.prefix + "attn_logit_softcapping");

  if (auto embedding = source.requireTensor("token_embd.weight")) {
    hyper.vocabulary = (*embedding)->rows();
    if (hyper.vocabulary > 1 << 24)
      builder.fail(makeError("{0}: token_embd.weight has {1} rows, expected at most {2}",
                             source.fileName(), hyper.vocabulary, 1 << 24));
    checkVocabulary(builder, hyper.vocabulary);
  } else {
    builder.fail(embedding.takeError());
  }
  if (builder.failed()) {
    hyper.context = hyper.embedding = hyper.layers = hyper.feedForward = 1;
    hyper.heads = hyper.kvHeads = hyper.vocabulary = 1;
    hyper.headDim = 1;
  }
  return hyper;
}

} // namespace izhc
