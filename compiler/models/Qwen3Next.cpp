// Qwen 3 Next: linear attention with the gated delta rule, every fourth layer
// attention with gated heads, and in all of them experts beside a shared one
// with a gate. Value heads that share a key head are neighbours, in GGUF files
// as in folders; GGUF files take queries, keys, values and gates apart, but
// keep shares and decays as folders have them, one key head after the other.

#include "compiler/models/blocks/DecoderFolder.h"
#include "compiler/models/blocks/Recurrent.h"

namespace izhc::models {

static mlir::Value build(ModelBuilder &builder, llvm::StringRef architecture, ModelFacts &facts) {
  return decoder(builder, architecture, facts, [&](const Hyper &hyper) {
    DecoderStyle style = deltaDecoder(builder, hyper, /*tiled=*/false);
    style.routing = Routing();
    return style;
  });
}

static void keys(FolderKeys &keys) {
  deltaKeys(keys);
  expertKeys(keys);
}

static constexpr llvm::StringRef kNames[] = {"qwen3next"};
static constexpr llvm::StringRef kTypes[] = {"qwen3_next"};
static const FolderMap kFolder = {kTypes, "qwen3next", groupedDeltaTensors(), mixtureTensors, keys};
extern const ModelSpec kQwen3Next;
const ModelSpec kQwen3Next = {kNames, build, &kFolder};

} // namespace izhc::models
