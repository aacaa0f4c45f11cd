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
  if (!hasWindows(builder, hyper))
    return near;
  if (builder.source().isArray(key)) {
    for (auto [flag, layer] : llvm::zip(near, builder.layerNumbers(key, hyper.layers, 0)))
      flag = layer != 0;
    return near;
  }
  period = int64_t(builder.number(key, double(period), 1, 1 << 12));
  for (int64_t i = 0; i < hyper.layers; ++i)
    near[i] = i % period < period - 1;
  return near;
}

void windowKeys(FolderKeys &keys) {
  std::vector<bool> near = keys.equals("layer_types", "sliding_attention");
  if (!near.empty())
    return keys.set(kPattern, near);
  constexpr llvm::StringLiteral name("sliding_window_pattern");
  auto pattern = keys.text(name);
  if (!pattern)
    return keys.copy(kPattern, "sliding_window_pattern|_sliding_window_pattern");
  int64_t layers = keys.integer("num_hidden_layers").value_or(0);
  if (pattern->empty() || layers < 1 || layers > (1 << 12))
    return keys.fail(
        makeError("{0}/config.json: {1} is {2} for {3} layers, expected text like LLLG",
                  keys.fileName(), name, quote(*pattern), layers));
  // The last layer sees all tokens whatever the text says.
  for (int64_t i = 0; i < layers; ++i)
    near.push_back((*pattern)[i % pattern->size()] == 'L' && i + 1 < layers);
  keys.set(kPattern, near);
}

} // namespace izhc
