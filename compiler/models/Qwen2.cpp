// Qwen 2 and 2.5: query, key and value products have biases.

#include "compiler/models/blocks/Decoder.h"
#include "compiler/models/blocks/DecoderFolder.h"
#include "compiler/models/blocks/Rope.h"

namespace izhc::models {

static mlir::Value build(ModelBuilder &builder, llvm::StringRef architecture, ModelFacts &facts) {
  return decoder(builder, architecture, facts, [&](const Hyper &hyper) {
    DecoderStyle style;
    style.attention.bias = Bias::Required;
    style.attention.angles = ropeAngles(builder, hyper);
    return style;
  });
}

static void keys(FolderKeys &keys) {
  keys.assume("attention_bias", Json::of(true));
  keys.assume("attention_out_bias", Json::of(false));
  keys.assume("use_sliding_window", Json::of(false));
  decoderKeys(keys);
}

static constexpr llvm::StringRef kNames[] = {"qwen2"};
static constexpr llvm::StringRef kTypes[] = {"qwen2"};
static const FolderMap kFolder = {kTypes, "qwen2", {}, decoderTensors, keys};
extern const ModelSpec kQwen2;
const ModelSpec kQwen2 = {kNames, build, &kFolder};

} // namespace izhc::models
