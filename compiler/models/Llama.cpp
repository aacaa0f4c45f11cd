// Llama and the models that share its GGUF architecture (Mistral, SmolLM2).
// Its query and key matrices are stored with rows in the order of pairs.

#include "compiler/models/blocks/Decoder.h"

namespace izhc::models {

static mlir::Value build(ModelBuilder &builder, llvm::StringRef architecture, ModelFacts &facts) {
  AttentionStyle style;
  style.rope = lm::RopeStyle::Pairs;
  return decoder(builder, architecture, style, facts);
}

static constexpr llvm::StringRef kNames[] = {"llama"};
extern const ModelSpec kLlama;
const ModelSpec kLlama = {kNames, build};

} // namespace izhc::models
