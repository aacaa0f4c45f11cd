// Llama and the models that share its architecture (Mistral, SmolLM2, and with
// experts Mixtral).

#include "compiler/models/blocks/Decoder.h"
#include "compiler/models/blocks/DecoderFolder.h"
#include "compiler/models/blocks/Rope.h"

namespace izhc::models {

static mlir::Value build(ModelBuilder &builder, llvm::StringRef architecture, ModelFacts &facts) {
  return decoder(builder, architecture, facts, [&](const Hyper &hyper) {
    DecoderStyle style;
    style.attention.rope = lm::RopeStyle::Pairs;
    style.attention.angles = ropeAngles(builder, hyper);
    style.routing = Routing();
    return style;
  });
}

static void keys(FolderKeys &keys) {
  decoderKeys(keys);
  if (keys.text("model_type") != "mistral")
    return;
  if (!keys.names("sliding_window"))
    keys.assume("sliding_window", Json::of(int64_t(4096)));
  // No flag switches it off here.
  keys.copyCount("attention.sliding_window", "sliding_window");
}

static constexpr llvm::StringRef kNames[] = {"llama"};
static constexpr llvm::StringRef kTypes[] = {"llama", "mistral"};
static const FolderMap kFolder = {kTypes, "llama", pairedHeads(), decoderTensors, keys};
extern const ModelSpec kLlama;
const ModelSpec kLlama = {kNames, build, &kFolder};

} // namespace izhc::models
