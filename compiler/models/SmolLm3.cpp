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
    std::vector<int64_t> turned = builder.layerNumbers(hyper.prefix + kTurned.str(), hyper.layers, -1);
    style.ofLayer = [turned](int64_t layer, AttentionStyle &attention) {
      if (turned[layer] < 0 ? layer % 4 == 3 : turned[layer] == 0)
        attention.angles = {};
    };
    return style;
  });
}

static void keys(FolderKeys &keys) {
  decoderKeys(keys);
  std::vector<int64_t> turned;
  if (const Json *list = keys.find("no_rope_layers"))
    for (const Json &item : list->items())
      turned.push_back(item.asInt().value_or(1));
  if (!turned.empty())
    keys.set(kTurned, turned);
}

static constexpr llvm::StringRef kNames[] = {"smollm3"};
static constexpr llvm::StringRef kTypes[] = {"smollm3"};
static const FolderMap kFolder = {kTypes, "smollm3", pairedHeads(), decoderTensors, keys};
extern const ModelSpec kSmolLm3;
const ModelSpec kSmolLm3 = {kNames, build, &kFolder};

} // namespace izhc::models
