// Qwen 2 and 2.5: query, key and value products have biases.

#include "compiler/models/blocks/Decoder.h"

namespace izhc::models {

static mlir::Value build(ModelBuilder &builder, llvm::StringRef architecture, ModelFacts &facts) {
  AttentionStyle style;
  style.bias = Bias::Required;
  return decoder(builder, architecture, style, facts);
}

static constexpr llvm::StringRef kNames[] = {"qwen2"};
extern const ModelSpec kQwen2;
const ModelSpec kQwen2 = {kNames, build};

} // namespace izhc::models
