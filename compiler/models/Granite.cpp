// Granite 3, dense: a llama with four multipliers.

#include "compiler/models/blocks/Decoder.h"
#include "compiler/models/blocks/DecoderFolder.h"
#include "compiler/models/blocks/Rope.h"
#include <cmath>

namespace izhc::models {

static mlir::Value build(ModelBuilder &builder, llvm::StringRef architecture, ModelFacts &facts) {
  return decoder(builder, architecture, facts, [&](const Hyper &hyper) {
    DecoderStyle style;
    auto factor = [&](const char *name, double otherwise) {
      return float(builder.number(hyper.prefix + name, otherwise, 1e-6, 1e6));
    };
    style.attention.rope = lm::RopeStyle::Pairs;
    style.attention.angles = ropeAngles(builder, hyper);
    style.attention.scale = factor("attention.scale", 1 / std::sqrt(double(hyper.headDim)));
    style.embeddingScale = factor("embedding_scale", 1);
    style.residualScale = factor("residual_scale", 1);
    style.logitScale = 1 / factor("logit_scale", 1);
    return style;
  });
}

static void keys(FolderKeys &keys) {
  // GGUF files without it mean the usual scale, folders none.
  keys.assume("attention_multiplier", Json::of(1.0));
  decoderKeys(keys);
  keys.copyNumber("attention.scale", "attention_multiplier");
  keys.copyNumber("embedding_scale", "embedding_multiplier");
  keys.copyNumber("residual_scale", "residual_multiplier");
  keys.copyNumber("logit_scale", "logits_scaling");
}

static constexpr llvm::StringRef kNames[] = {"granite"};
static constexpr llvm::StringRef kTypes[] = {"granite"};
static const FolderMap kFolder = {kTypes, "granite", pairedHeads(), decoderTensors, keys};
extern const ModelSpec kGranite;
const ModelSpec kGranite = {kNames, build, &kFolder};

} // namespace izhc::models
