// Qwen 3, dense: heads of queries and keys are normed, and their size is a key
// of its own, not the embedding's share.

#include "compiler/models/blocks/Decoder.h"
#include "compiler/models/blocks/DecoderFolder.h"
#include "compiler/models/blocks/Rope.h"

namespace izhc::models {

static mlir::Value build(ModelBuilder &builder, llvm::StringRef architecture, ModelFacts &facts) {
  return decoder(builder, architecture, facts, [&](const Hyper &hyper) {
    DecoderStyle style;
    style.attention.headNorms = HeadNorms::Heads;
    style.attention.angles = ropeAngles(builder, hyper);
    return style;
  });
}

static void keys(FolderKeys &keys) {
  keys.assume("use_sliding_window", Json::of(false));
  decoderKeys(keys);
}

static constexpr llvm::StringRef kNames[] = {"qwen3"};
static constexpr llvm::StringRef kTypes[] = {"qwen3"};
static const FolderMap kFolder = {kTypes, "qwen3", {}, decoderTensors, keys};
extern const ModelSpec kQwen3;
const ModelSpec kQwen3 = {kNames, build, &kFolder};

} // namespace izhc::models
