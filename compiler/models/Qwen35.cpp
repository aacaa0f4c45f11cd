// Qwen 3.5, dense: linear attention with the gated delta rule, and every fourth
// layer attention whose heads are normed, turned in part and gated. GGUF files
// store value heads so that neighbours have different key heads, folders don't.
// For text all sections of the positions are equal.

#include "compiler/models/blocks/DecoderFolder.h"
#include "compiler/models/blocks/Recurrent.h"

namespace izhc::models {

static constexpr llvm::StringLiteral kGrouped("ssm.grouped");

static mlir::Value build(ModelBuilder &builder, llvm::StringRef architecture, ModelFacts &facts) {
  return decoder(builder, architecture, facts, [&](const Hyper &hyper) {
    bool grouped = builder.unwrap<bool>(
        builder.source().getBoolOr(hyper.prefix + kGrouped.str(), false), false);
    return deltaDecoder(builder, hyper, /*tiled=*/!grouped);
  });
}

static void keys(FolderKeys &keys) {
  deltaKeys(keys);
  keys.set(kGrouped, Json::of(true));
  keys.ownForm();
}

static constexpr llvm::StringRef kNames[] = {"qwen35"};
static constexpr llvm::StringRef kTypes[] = {"qwen3_5_text", "qwen3_5"};
static const FolderMap kFolder = {kTypes, "qwen35", deltaTensors(), decoderTensors, keys};
extern const ModelSpec kQwen35;
const ModelSpec kQwen35 = {kNames, build, &kFolder};

} // namespace izhc::models
