// Flags are made here so that architectures ask for one form only.

#include "compiler/models/blocks/Windows.h"
#include "compiler/support/Error.h"
#include "llvm/ADT/STLExtras.h"

namespace izhc {

static constexpr llvm::StringLiteral kPattern("attention.sliding_window_pattern");

bool hasWindows(ModelBuilder &builder, const Hyper &hyper) {
  return hyper.window != 0 ||
         builder.number(hyper.prefix + "attention.sliding_window", 0, 0, 1 << 30) != 0;
}

std::vector<bool> windowLayers(ModelBuilder &builder, const Hyper &hyper, int64_t period) {
  std::string key = hyper.prefix + kPattern.str();
  std::vector<bool> near(hyper.layers);
  if (builder.source().isArray(key)) {
    for (auto [flag, layer] : llvm::zip(near, builder.layerNumbers(key, hyper.layers, 0)))
      flag = layer != 0;
    // Such layers may differ from the others in more than what they see.
    if (llvm::is_contained(near, true) && !hasWindows(builder, hyper))
      builder.fail(
          makeError("{0} is missing or 0, but there are layers with a window; expected how "
                    "many tokens they see",
                    builder.source().keyPlace(hyper.prefix + "attention.sliding_window")));
    return near;
  }
  if (!hasWindows(builder, hyper))
    return near;
  period = int64_t(builder.number(key, double(period), 1, 1 << 12));
  for (int64_t i = 0; i < hyper.layers; ++i)
    near[i] = i % period < period - 1;
  return near;
}

// What sliding_window_pattern says: a number, or text.
static void patternKey(FolderKeys &keys) {
  constexpr llvm::StringLiteral name("sliding_window_pattern");
  const Json *found = keys.find(name);
  auto pattern = found ? found->asString() : std::nullopt;
  if (!pattern)
    return keys.copyCount(kPattern, "sliding_window_pattern|_sliding_window_pattern");
  int64_t layers = keys.count("num_hidden_layers").value_or(0);
  if (pattern->empty() || layers < 1 || layers > (1 << 12))
    return keys.fail(
        makeError("{0}/config.json: {1} is {2} for {3} layers, expected text like LLLG",
                  keys.fileName(), name, quote(*pattern), layers));
  // The last layer sees all tokens whatever the text says.
  std::vector<bool> near;
  for (int64_t i = 0; i < layers; ++i)
    near.push_back((*pattern)[i % pattern->size()] == 'L' && i + 1 < layers);
  keys.set(kPattern, near, name);
}

void windowKeys(FolderKeys &keys, int64_t assumed, bool optional) {
  constexpr llvm::StringLiteral name("sliding_window");
  if (!keys.names(name))
    keys.assume(name, Json::of(assumed));
  keys.copyCount("attention.sliding_window", name);
  std::vector<bool> near = keys.equals("layer_types", "sliding_attention", "full_attention");
  bool some = near.empty() ? !optional : llvm::is_contained(near, true);
  if (some && keys.count(name).value_or(0) == 0)
    keys.refuse(name, "is 0 or null, but there are layers with a window; expected how many tokens "
                      "they see");
  if (near.empty())
    return patternKey(keys);
  keys.set(kPattern, near, "layer_types");
}

} // namespace izhc
