// Qwen 3, dense: heads of queries and keys are normed, and their size is a key
// of its own, not the embedding's share.

#include "compiler/models/blocks/Decoder.h"
#include "compiler/models/blocks/DecoderFolder.h"

namespace izhc::models {

static mlir::Value build(ModelBuilder &builder, llvm::StringRef architecture, ModelFacts &facts) {
  AttentionStyle style;
  style.headNorms = true;
  return decoder(builder, architecture, style, facts);
}

static constexpr llvm::StringRef kNames[] = {"qwen3"};
static const FolderMap kFolder = {kNames, "qwen3", {}, decoderTensors, decoderKeys};
extern const ModelSpec kQwen3;
const ModelSpec kQwen3 = {kNames, build, &kFolder};

} // namespace izhc::models
