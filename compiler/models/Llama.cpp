// Llama and the models that share its architecture (Mistral, SmolLM2). GGUF
// files store its query and key matrices with rows in the order of pairs,
// folders as two halves.

#include "compiler/models/blocks/Decoder.h"
#include "compiler/models/blocks/DecoderFolder.h"

namespace izhc::models {

static constexpr llvm::StringLiteral kHalves("rope.halves");

static mlir::Value build(ModelBuilder &builder, llvm::StringRef architecture, ModelFacts &facts) {
  AttentionStyle style;
  bool halves = builder.unwrap<bool>(
      builder.source().getBoolOr((architecture + "." + kHalves).str(), false), false);
  style.rope = halves ? lm::RopeStyle::Halves : lm::RopeStyle::Pairs;
  return decoder(builder, architecture, style, facts);
}

static void keys(FolderKeys &keys) {
  decoderKeys(keys);
  keys.set(kHalves, Json::of(true));
}

static constexpr llvm::StringRef kTypes[] = {"llama", "mistral"};
static const FolderMap kFolder = {kTypes, "llama", {}, decoderTensors, keys};

static constexpr llvm::StringRef kNames[] = {"llama"};
extern const ModelSpec kLlama;
const ModelSpec kLlama = {kNames, build, &kFolder};

} // namespace izhc::models
