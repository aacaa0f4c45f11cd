// Qwen 3.5, dense: linear attention with the gated delta rule, and every fourth
// layer attention whose heads are normed, turned in part and gated. Neighbours
// among the value heads have different key heads, in GGUF files; folders are read
// in that order. For text all sections of the positions are equal.

#include "compiler/models/blocks/DecoderFolder.h"
#include "compiler/models/blocks/Recurrent.h"

namespace izhc::models {

static mlir::Value build(ModelBuilder &builder, llvm::StringRef architecture, ModelFacts &facts) {
  return decoder(builder, architecture, facts,
                 [&](const Hyper &hyper) { return deltaDecoder(builder, hyper, /*tiled=*/true); });
}

static void keys(FolderKeys &keys) {
  deltaKeys(keys);
  ropeSectionKeys(keys);
}

static constexpr llvm::StringRef kNames[] = {"qwen35"};
static constexpr llvm::StringRef kTypes[] = {"qwen3_5_text", "qwen3_5"};
static const FolderMap kFolder = {kTypes, "qwen35", tiledDeltaTensors(), decoderTensors, keys};
extern const ModelSpec kQwen35;
const ModelSpec kQwen35 = {kNames, build, &kFolder};

} // namespace izhc::models
