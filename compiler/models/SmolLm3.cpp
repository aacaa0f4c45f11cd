// SmolLM 3: some layers don't turn their queries and keys: every fourth, unless
// the folder says which.

#include "compiler/models/blocks/Decoder.h"
#include "compiler/models/blocks/DecoderFolder.h"
#include "compiler/models/blocks/Rope.h"

namespace izhc::models {

// One number a layer: 0 where nothing is turned (the publisher's key says it
// the other way round than its name).
static constexpr llvm::StringLiteral kTurned("rope.layers");

static mlir::Value build(ModelBuilder &builder, llvm::StringRef architecture, ModelFacts &facts) {
  return decoder(builder, architecture, facts, [&](const Hyper &hyper) {
    DecoderStyle style;
    style.attention.rope = lm::RopeStyle::Pairs;
    style.attention.angles = ropeAngles(builder, hyper);
    std::vector<int64_t> turned =
        builder.layerNumbers(hyper.prefix + kTurned.str(), hyper.layers, -1);
    style.ofLayer = [turned](int64_t layer, AttentionStyle &attention) {
      if (turned[layer] < 0 ? layer % 4 == 3 : turned[layer] == 0)
        attention.angles = {};
    };
    return style;
  });
}

static void keys(FolderKeys &keys) {
  keys.assume("rope_theta", Json::of(2e6));
  keys.assume("use_sliding_window", Json::of(false));
  decoderKeys(keys);
  std::vector<int64_t> turned = keys.counts("no_rope_layers");
  if (!turned.empty())
    return keys.set(kTurned, turned, "no_rope_layers");
  int64_t interval = keys.count("no_rope_layer_interval", 1).value_or(4);
  int64_t layers = std::min<int64_t>(keys.count("num_hidden_layers").value_or(0), 1 << 12);
  for (int64_t i = 1; i <= layers; ++i)
    turned.push_back(i % interval != 0);
  keys.set(kTurned, turned, "no_rope_layer_interval");
}

static constexpr llvm::StringRef kNames[] = {"smollm3"};
static constexpr llvm::StringRef kTypes[] = {"smollm3"};
static const FolderMap kFolder = {kTypes, "smollm3", pairedHeads(), decoderTensors, keys};
extern const ModelSpec kSmolLm3;
const ModelSpec kSmolLm3 = {kNames, build, &kFolder};

} // namespace izhc::models
