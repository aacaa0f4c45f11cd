// Ministral 3: a llama with yarn whose queries grow with the logarithm of their
// position.

#include "compiler/models/blocks/Decoder.h"
#include "compiler/models/blocks/DecoderFolder.h"
#include "compiler/models/blocks/Rope.h"
#include "compiler/models/blocks/RopeDefaults.h"

namespace izhc::models {

static mlir::Value build(ModelBuilder &builder, llvm::StringRef architecture, ModelFacts &facts) {
  return decoder(builder, architecture, facts, [&](const Hyper &hyper) {
    DecoderStyle style;
    style.attention.rope = lm::RopeStyle::Pairs;
    style.attention.angles = ropeAngles(builder, hyper);
    RopeOptions queries;
    queries.growth = float(builder.number(hyper.prefix + "attention.temperature_scale", 0, 0, 1e3));
    queries.period = int64_t(builder.number(hyper.prefix + "rope.scaling.original_context_length",
                                            hyper.context, 1, 1 << 30));
    if (queries.growth != 0)
      style.attention.queryAngles = ropeAngles(builder, hyper, queries);
    return style;
  });
}

// Of folders that don't tell how positions turn: as the first model has them,
// whatever base stands elsewhere.
static void assumeRope(FolderKeys &keys) {
  constexpr double base = 1e6;
  if (keys.number("rope_theta").value_or(base) != base)
    keys.refuse("rope_theta",
                "is not 1000000, but there are no rope_parameters, without which this "
                "architecture turns by 1000000: give it in rope_parameters");
  assumeYarn(keys, 16, 16384);
  for (auto [name, value] : {std::pair("rope_parameters.rope_theta", base),
                             {"rope_parameters.mscale", 1},
                             {"rope_parameters.mscale_all_dim", 1},
                             {"rope_parameters.llama_4_scaling_beta", 0.1}})
    keys.assume(name, Json::of(value));
}

static void keys(FolderKeys &keys) {
  if (lacksRope(keys))
    assumeRope(keys);
  decoderKeys(keys);
  // No flag switches it off here.
  keys.copyCount("attention.sliding_window", "sliding_window");
  keys.copyNumber("attention.temperature_scale", "rope_parameters.llama_4_scaling_beta");
  // Says for GGUF files what the growth of angles follows from. They take the
  // other scale for 1.
  if (keys.number("rope_parameters.mscale") == 1)
    keys.copyNumber("rope.scaling.yarn_log_multiplier", "rope_parameters.mscale_all_dim");
}

static constexpr llvm::StringRef kNames[] = {"mistral3"};
static constexpr llvm::StringRef kTypes[] = {"ministral3"};
static const FolderMap kFolder = {kTypes, "mistral3", pairedHeads(), decoderTensors, keys};
extern const ModelSpec kMistral3;
const ModelSpec kMistral3 = {kNames, build, &kFolder};

} // namespace izhc::models
