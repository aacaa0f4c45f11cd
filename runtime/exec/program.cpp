// The plan loop.

#include "runtime/exec/program.h"

namespace izh {
namespace {

void* address_of(const izh_model& model, const Spaces& spaces, const BindingFacts& binding) {
  const Image& image = model.image;
  // Kernels only read what is mapped from the file; their bindings have one type.
  uint8_t* file = const_cast<uint8_t*>(image.data);
  switch (binding.space) {
    case Space::Arena:
      return static_cast<uint8_t*>(spaces.arena) + binding.offset;
    case Space::Weights:
      return file + image.root.weights_section.offset + binding.offset;
    case Space::Constants:
      return file + image.root.constants_section.offset + binding.offset;
    case Space::State:
      return spaces.states[binding.offset];
    case Space::Input:
      return spaces.inputs[binding.offset];
  }
  return nullptr;
}

// Kernels have no type information before their first instruction.
#if defined(__clang__)
__attribute__((no_sanitize("function")))
#endif
void run_piece(void* argument, uint32_t phase, uint32_t piece) {
  const Program* program = static_cast<const Program*>(argument);
  const Program::Dispatch& dispatch = program->dispatches[phase];
  const bool is_long = piece < dispatch.long_pieces;
  const int64_t size = is_long ? dispatch.long_units : dispatch.short_units;
  const int64_t before = is_long ? 0 : dispatch.long_pieces * dispatch.long_units;
  const int64_t number = static_cast<int64_t>(piece) - (is_long ? 0 : dispatch.long_pieces);
  const int64_t begin = before + number * size;
  const int64_t left = dispatch.units - begin;
  dispatch.kernel(dispatch.bindings, program->params, begin, begin + (left < size ? left : size));
}

// A dispatch of more grains than this is cut into nothing else: then they are
// large, and a thread that falls behind may have taken few of them.
constexpr int64_t kFewGrains = 16;
// Tiles of attention are cut into about so many pieces a thread: units that
// follow each other fetch for each other.
constexpr int64_t kTilePieces = 16;

// What is left for those who are early is cut this much finer: threads end
// together, but for one of these.
constexpr int64_t kFiner = 4;

// Of an even grain the parts are even, too: a kernel may take two units together
// for less than twice the time of one.
int64_t finer(int64_t grain) {
  const int64_t step = grain % 2 == 0 ? 2 : 1;
  const int64_t units = grain / kFiner / step * step;
  return units > 0 ? units : step;
}

// Cuts a dispatch into pieces. Memory is read fastest in long runs, so each
// thread first takes one piece of nearly its share of few grains.
uint32_t cut(Program::Dispatch* dispatch, uint32_t threads) {
  const int64_t grains = (dispatch->units + dispatch->grain - 1) / dispatch->grain;
  dispatch->long_pieces = 0;
  dispatch->short_units = dispatch->grain;
  if (dispatch->extent == Extent::Tiles) {
    const int64_t together = grains / (kTilePieces * threads);
    if (together > 1) dispatch->short_units *= together;
  }
  // Units of one extent take the same time; those of tiles don't.
  if (dispatch->extent == Extent::Fixed && grains <= kFewGrains) {
    const int64_t share = threads == 1 ? grains : grains * 7 / 8 / threads;
    if (share > 1) {
      dispatch->long_pieces = threads;
      dispatch->long_units = share * dispatch->grain;
      dispatch->short_units = finer(dispatch->grain);
    }
  }
  // In range: the loader has limited units, and grain is at least 1.
  const int64_t rest = dispatch->units - dispatch->long_pieces * dispatch->long_units;
  const int64_t size = dispatch->short_units;
  return dispatch->long_pieces + static_cast<uint32_t>(rest > 0 ? (rest + size - 1) / size : 0);
}

}  // namespace

bool fills_only_logits(const Root& root, size_t index) {
  const DispatchFacts& dispatch = root.dispatches[index];
  if (index + 1 != root.dispatches.size() || dispatch.binding_count == 0) return false;
  const BindingFacts* bindings = root.bindings.data() + dispatch.first_binding;
  for (uint32_t i = 0; i < dispatch.binding_count; ++i) {
    if (bindings[i].space == Space::State) return false;
  }
  const BindingFacts& last = bindings[dispatch.binding_count - 1];
  return last.space == Space::Arena && last.offset == root.plan.logits_offset;
}

bool program_bind(const izh_model& model, const Spaces& spaces, Program* out) {
  const Root& root = model.image.root;
  const VariantFacts& variant = root.variants[model.variant];
  if (!out->bindings.resize(root.bindings.size())) return false;
  if (!out->dispatches.resize(root.dispatches.size())) return false;
  if (!out->pieces.resize(root.dispatches.size())) return false;
  for (size_t i = 0; i < root.bindings.size(); ++i) {
    out->bindings[i] = address_of(model, spaces, root.bindings[i]);
  }
  for (size_t i = 0; i < root.dispatches.size(); ++i) {
    const DispatchFacts& facts = root.dispatches[i];
    const uint32_t entry = root.entries[variant.first_entry + facts.kernel];
    Program::Dispatch& dispatch = out->dispatches[i];
    dispatch.kernel =
        reinterpret_cast<Kernel>(reinterpret_cast<uintptr_t>(model.code.data) + entry);
    dispatch.bindings = out->bindings.data() + facts.first_binding;
    dispatch.units_each = static_cast<int64_t>(facts.units);
    dispatch.grain = facts.grain;
    dispatch.extent = facts.extent;
    dispatch.only_logits = fills_only_logits(root, i);
  }
  return true;
}

void program_run(Program* program, Team* team, const StepCounts& step) {
  const int64_t counts[kExtents] = {1,          step.tokens, step.outputs,
                                    step.tiles, step.merges, step.sequences};
  for (uint32_t i = 1; i < kExtents; ++i) program->params[i - 1] = counts[i];
  for (size_t i = 0; i < program->dispatches.size(); ++i) {
    Program::Dispatch& dispatch = program->dispatches[i];
    dispatch.units = dispatch.units_each * counts[static_cast<size_t>(dispatch.extent)];
    if (dispatch.only_logits && step.outputs == 0) dispatch.units = 0;
    program->pieces[i] = cut(&dispatch, team_threads(team));
  }
  team_run(team, {program->pieces.data(), static_cast<uint32_t>(program->pieces.size()), &run_piece,
                  program});
}

}  // namespace izh
