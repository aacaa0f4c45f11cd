// Mixtures of experts: how rows are routed and what the experts compute.

#pragma once

#include "compiler/import/FolderMap.h"
#include "compiler/models/blocks/Hyper.h"

namespace izhc {

// What an architecture does where the file's metadata doesn't say otherwise.
struct Routing {
  lm::Score score = lm::Score::Softmax;
  // The weights of a row's experts add up to one (before `scale`).
  bool normalize = true;
  float scale = 1;
  // How many of a group's best experts tell what the group is worth.
  int64_t groupBest = 2;
  lm::Gating gating = lm::Gating::Silu;
  float alpha = 1, limit = 0; // of limited gating
};

// The numbers of a mixture, read from expert_count and the like and checked.
struct Experts {
  Routing routing;
  int64_t count = 0;
  int64_t used = 1;
  int64_t feedForward = 1;
  int64_t groups = 1, groupsUsed = 1;
  int64_t shared = 0; // width of the part that all rows pass; 0: none
};

// Without expert_count, or after an error, `count` is 0.
Experts readExperts(ModelBuilder &builder, const Hyper &hyper, const Routing &routing);

// True if the layer has a router; some layers of a mixture are dense.
bool isMixture(const ModelBuilder &builder, const std::string &layer);

// What the experts of `layer` make of the rows `input`, and behind it what the
// shared part makes of them, where there is one: the layer adds both. Uses
// ffn_gate_inp (the router, and exp_probs_b where ranks have a bias),
// ffn_gate_exps, ffn_up_exps and ffn_down_exps, and for the shared part
// ffn_gate_shexp, ffn_up_shexp and ffn_down_shexp (and ffn_gate_inp_shexp, a
// gate for the whole part).
llvm::SmallVector<mlir::Value, 2> mixture(ModelBuilder &builder, const Experts &experts,
                                          const std::string &layer, mlir::Value input);

// What the router, experts and shared part are called in published folders, and
// the keys of their sizes.
llvm::ArrayRef<TensorRule> expertTensors();
// These and decoderTensors.
llvm::ArrayRef<TensorRule> mixtureTensors();
void expertKeys(FolderKeys &keys);

} // namespace izhc
