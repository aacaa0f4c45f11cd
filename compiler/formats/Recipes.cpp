// The table of recipes and the rules that they share. A tensor's role is told
// by its name, as every GGUF file has it.

#include "compiler/formats/Recipes.h"
#include "compiler/support/Error.h"

#include <cassert>

using namespace izhc;

static constexpr Recipe kRecipes[] = {
    {"f32", 0, "f32", "", Recipe::Nowhere, "f32"},
    {"f16", 1, "f16", "", Recipe::Nowhere, "f16"},
    {"bf16", 32, "bf16", "", Recipe::Nowhere, "bf16"},
    {"q8_0", 7, "q8_0", "", Recipe::Nowhere, "q8_0"},
    {"q6_k", 18, "q6_k", "", Recipe::Nowhere, "q6_k"},
    {"q5_k_m", 17, "q5_k", "q6_k", Recipe::Some, "q6_k"},
    {"q5_k_s", 16, "q5_k", "", Recipe::Nowhere, "q6_k"},
    {"q4_k_m", 15, "q4_k", "q6_k", Recipe::Some, "q6_k"},
    {"q4_k_s", 14, "q4_k", "q5_k", Recipe::First, "q6_k"},
    {"q3_k_m", 12, "q3_k", "q5_k", Recipe::Some, "q6_k"},
    {"q2_k", 10, "q2_k", "q4_k", Recipe::Some, "q6_k"},
    {"q5_1", 9, "q5_1", "", Recipe::Nowhere, "q6_k"},
    {"q5_0", 8, "q5_0", "", Recipe::Nowhere, "q6_k"},
    {"q4_1", 3, "q4_1", "", Recipe::Nowhere, "q6_k"},
    {"q4_0", 2, "q4_0", "", Recipe::Nowhere, "q6_k"},
    {"iq4_nl", 25, "iq4_nl", "", Recipe::Nowhere, "q6_k"},
    {"iq4_xs", 30, "iq4_xs", "q5_k", Recipe::First, "q6_k"},
    {"mxfp4", 38, "mxfp4", "", Recipe::Nowhere, "q8_0"},
};

llvm::ArrayRef<Recipe> izhc::allRecipes() { return kRecipes; }

const Recipe *izhc::findRecipe(llvm::StringRef name) {
  for (const Recipe &recipe : kRecipes)
    if (recipe.name == name)
      return &recipe;
  return nullptr;
}

llvm::Expected<const Recipe *> izhc::requireRecipe(llvm::StringRef name) {
  if (const Recipe *recipe = findRecipe(name.lower()))
    return recipe;
  std::string names;
  for (const Recipe &recipe : kRecipes)
    names += (names.empty() ? "" : ", ") + recipe.name.str();
  return makeError("--quant: there is no recipe {0}; known are {1}", quote(name), names);
}

const FormatSpec *izhc::fittingFormat(const FormatSpec &format, int64_t cols) {
  if (cols % format.blockWeights == 0)
    return &format;
  // Formats with blocks of 32 and at least as many bits.
  static constexpr std::pair<llvm::StringLiteral, llvm::StringLiteral> kSmaller[] = {
      {"q2_k", "iq4_nl"}, {"q3_k", "iq4_nl"}, {"iq4_xs", "iq4_nl"},
      {"q4_k", "q5_0"},   {"q5_k", "q5_1"},   {"q6_k", "q8_0"}};
  for (auto &[large, small] : kSmaller)
    if (format.name == large && cols % 32 == 0)
      return findFormat(small);
  return nullptr;
}

// The number in "blk.NUMBER.", or -1.
static int64_t layerOf(llvm::StringRef name) {
  int64_t layer = -1;
  if (name.consume_front("blk.") && !name.consumeInteger(10, layer))
    return layer;
  return -1;
}

// Small, and errors in them steer everything after; or no matrices of products.
static bool staysAsItIs(const TensorFacts &tensor) {
  if (tensor.shape.size() < 2 || !tensor.name.ends_with(".weight"))
    return true;
  for (llvm::StringRef part : {"_norm.", "ffn_gate_inp", "conv", "rope_freqs", "position_embd",
                               "token_types", "per_layer_model_proj", "altup", "laurel"})
    if (tensor.name.contains(part))
      return true;
  return false;
}

static bool isBetter(const Recipe &recipe, const TensorFacts &tensor) {
  bool values = tensor.name.contains("attn_v.") || tensor.name.contains("attn_v_b.") ||
                tensor.name.contains("attn_kv_b.") || tensor.name.contains("attn_qkv.");
  if (!values && !tensor.name.contains("ffn_down"))
    return false;
  int64_t layer = layerOf(tensor.name), eighth = tensor.layers / 8;
  switch (recipe.where) {
  case Recipe::Nowhere:
    return false;
  case Recipe::First:
    return layer < (values ? 4 : eighth);
  case Recipe::Some:
    return layer < eighth || layer >= 7 * tensor.layers / 8 || (layer - eighth) % 3 == 2;
  }
  return false;
}

const FormatSpec *izhc::chooseFormat(const Recipe &recipe, const TensorFacts &tensor) {
  if (staysAsItIs(tensor))
    return nullptr;
  llvm::StringRef name = recipe.base;
  if (tensor.name == "output.weight" || (tensor.tied && tensor.name == "token_embd.weight"))
    name = recipe.output;
  else if (isBetter(recipe, tensor))
    name = recipe.better;
  const FormatSpec *format = findFormat(name);
  assert(format && "recipes name formats that exist");
  return fittingFormat(*format, tensor.shape[0]);
}

static double bitsOf(const FormatSpec &format) {
  return 8.0 * format.blockBytes / format.blockWeights;
}

llvm::SmallVector<const FormatSpec *> izhc::formatLadder(const TensorFacts &tensor,
                                                         const FormatSpec &stored) {
  llvm::SmallVector<const FormatSpec *> ladder;
  if (staysAsItIs(tensor))
    return ladder;
  for (llvm::StringRef name : {"q2_k", "q3_k", "iq4_xs", "q4_k", "q5_k", "q6_k", "q8_0"}) {
    const FormatSpec *format = fittingFormat(*findFormat(name), tensor.shape[0]);
    if (format && bitsOf(*format) < bitsOf(stored) &&
        (ladder.empty() || bitsOf(*format) > bitsOf(*ladder.back())))
      ladder.push_back(format);
  }
  if (!ladder.empty())
    ladder.push_back(&stored);
  return ladder;
}
