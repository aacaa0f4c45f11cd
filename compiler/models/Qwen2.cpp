// Qwen 2 and 2.5: query, key and value products have biases.

#include "compiler/models/blocks/Decoder.h"
#include "compiler/models/blocks/DecoderFolder.h"

namespace izhc::models {

static mlir::Value build(ModelBuilder &builder, llvm::StringRef architecture, ModelFacts &facts) {
  AttentionStyle style;
  style.bias = Bias::Required;
  return decoder(builder, architecture, style, facts);
}

static constexpr llvm::StringRef kNames[] = {"qwen2"};
static const FolderMap kFolder = {kNames, "qwen2", {}, decoderTensors, decoderKeys};
extern const ModelSpec kQwen2;
const ModelSpec kQwen2 = {kNames, build, &kFolder};

} // namespace izhc::models
