// Phi 3 and 4: query, key and value matrices are stored as one, and so are gate
// and up; short and long texts have factors of their own for the angles.

#include "compiler/models/blocks/Decoder.h"
#include "compiler/models/blocks/DecoderFolder.h"
#include "compiler/models/blocks/Rope.h"

namespace izhc::models {

static mlir::Value build(ModelBuilder &builder, llvm::StringRef architecture, ModelFacts &facts) {
  return decoder(builder, architecture, facts, [&](const Hyper &hyper) {
    DecoderStyle style;
    style.attention.angles = ropeAngles(builder, hyper);
    return style;
  });
}

static constexpr TensorRule kTensors[] = {
    {"blk.*.attn_qkv.weight", "model.layers.*.self_attn.qkv_proj.weight"},
    {"blk.*.ffn_up.weight", "model.layers.*.mlp.gate_up_proj.weight"},
};

static void keys(FolderKeys &keys) {
  // The publisher's code takes it for another name of longrope.
  if (keys.text("rope_parameters.rope_type|rope_scaling.rope_type|rope_scaling.type") == "yarn")
    keys.refuse("rope_scaling", "is of type 'yarn', which means 'longrope' in this architecture: "
                                "name it so");
  keys.assume("original_max_position_embeddings", Json::of(int64_t(4096)));
  decoderKeys(keys);
  // No flag switches it off here.
  keys.copyCount("attention.sliding_window", "sliding_window");
}

static constexpr llvm::StringRef kNames[] = {"phi3"};
static constexpr llvm::StringRef kTypes[] = {"phi3"};
static const FolderMap kFolder = {kTypes, "phi3", kTensors, decoderTensors, keys};
extern const ModelSpec kPhi3;
const ModelSpec kPhi3 = {kNames, build, &kFolder};

} // namespace izhc::models
