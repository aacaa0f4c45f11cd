// The plan made ready to run: kernels and bindings as addresses, in one flat
// table that all threads walk.

#pragma once

#include <cstdint>

#include "runtime/base/array.h"
#include "runtime/exec/model.h"
#include "runtime/platform/team.h"

namespace izh {

// Computes units begin..end of a dispatch. `params`: [0] tokens, [1] outputs,
// [2] tiles, [3] merges, [4] sequences of the step.
using Kernel = void (*)(void* const* bindings, const int64_t* params, int64_t begin, int64_t end);

// Where the spaces of a context are.
struct Spaces {
  void* arena;
  void* const* states;  // base of each state's pool
  void* const* inputs;  // the kInputs arrays
};

struct Program {
  struct Dispatch {
    Kernel kernel;
    void* const* bindings;
    int64_t units;       // in this step
    int64_t units_each;  // times the extent's count
    int64_t grain;
    // Pieces of this step: first `long_pieces` of `long_units`, then of
    // `short_units`.
    uint32_t long_pieces;
    int64_t long_units;
    int64_t short_units;
    Extent extent;
    bool only_logits;  // useless in a step without outputs
  };
  Array<Dispatch> dispatches;
  Array<void*> bindings;
  Array<uint32_t> pieces;  // of each dispatch in this step
  int64_t params[kExtents - 1] = {};
};

// True for a last dispatch that does nothing but fill the logits (the
// destination is the last binding): nothing after it reads the arena, and it
// changes no state.
bool fills_only_logits(const Root& root, size_t index);

// Resolves the plan of `model`. False if there is no memory.
[[nodiscard]] bool program_bind(const izh_model& model, const Spaces& spaces, Program* out);

// How much the input arrays of a step hold.
struct StepCounts {
  uint32_t tokens;
  uint32_t outputs;
  uint32_t tiles;
  uint32_t merges;
  uint32_t sequences;
};

// Runs one step; the input arrays are filled.
void program_run(Program* program, Team* team, const StepCounts& counts);

}  // namespace izh
