// Verification of the plan: every index, offset and size that the plan loop
// will use without looking.

#include "runtime/base/status.h"
#include "runtime/exec/image.h"
#include "runtime/schema/window.h"

namespace izh {
namespace {

using Number = unsigned long long;

constexpr uint64_t kMaxArenaBytes = uint64_t{1} << 40;
constexpr uint64_t kMaxPageBytes = uint64_t{1} << 32;
constexpr uint32_t kMaxVocabulary = 1u << 24;
constexpr uint32_t kMaxTileTokens = 256;
constexpr uint32_t kMaxSpanTokens = 1u << 16;
constexpr uint32_t kMaxPartials = 1u << 16;
// Pieces of a dispatch are counted in 30 bits.
constexpr uint64_t kMaxUnits = uint64_t{1} << 30;

const char* const kSpaceNames[kSpaces] = {"arena", "weights", "constants", "state", "input"};

struct PlanVerifier {
  const Root& root;
  const char* file;
  izh_error* error;

  izh_status out_of_range(const char* what, uint64_t found, uint64_t low, uint64_t high) const {
    return fail(error, IZH_BAD_ARTIFACT, "%s of %s is %llu, but %llu to %llu is allowed", what,
                file, static_cast<Number>(found), static_cast<Number>(low),
                static_cast<Number>(high));
  }

  izh_status check_range(const char* what, uint64_t value, uint64_t low, uint64_t high) const {
    return value < low || value > high ? out_of_range(what, value, low, high) : IZH_OK;
  }

  izh_status check_limits() const {
    const PlanFacts& plan = root.plan;
    IZH_TRY(check_range("the number of logits", root.model.vocabulary, 1, kMaxVocabulary));
    IZH_TRY(check_range("max_tokens", plan.max_tokens, 1, kMaxStepTokens));
    IZH_TRY(check_range("max_outputs", plan.max_outputs, 1, plan.max_tokens));
    IZH_TRY(check_range("tile_tokens", plan.tile_tokens, 1, kMaxTileTokens));
    IZH_TRY(check_range("page_tokens", plan.page_tokens, kPageTokens, kPageTokens));
    IZH_TRY(check_range("span_tokens", plan.span_tokens, 0, kMaxSpanTokens));
    IZH_TRY(check_range("max_partials", plan.max_partials, 0, plan.span_tokens ? kMaxPartials : 0));
    IZH_TRY(check_range("the arena's size", plan.arena_bytes, 1, kMaxArenaBytes));
    const uint64_t logits = uint64_t{plan.max_outputs} * root.model.vocabulary * sizeof(float);
    if (plan.logits_offset % kBindingAlignment != 0 || logits > plan.arena_bytes ||
        plan.logits_offset > plan.arena_bytes - logits) {
      return fail(error, IZH_BAD_ARTIFACT,
                  "the logits of %s (%llu bytes at %llu) do not fit in the arena of %llu bytes",
                  file, static_cast<Number>(logits), static_cast<Number>(plan.logits_offset),
                  static_cast<Number>(plan.arena_bytes));
    }
    for (const uint64_t page_bytes : root.states) {
      IZH_TRY(check_range("a state's page size", page_bytes, 1, kMaxPageBytes));
      if (page_bytes % kBindingAlignment != 0) {
        return fail(error, IZH_BAD_ARTIFACT,
                    "a state's page of %s has %llu bytes, which is not a multiple of %llu", file,
                    static_cast<Number>(page_bytes), static_cast<Number>(kBindingAlignment));
      }
    }
    for (size_t i = 0; i < root.windows.size(); ++i) {
      const uint64_t most = root.per_sequence[i] ? 0 : schema::kMaxWindow;
      IZH_TRY(check_range("a state's window", root.windows[i], 0, most));
    }
    if (root.dispatches.empty() || root.variants.empty()) {
      return fail(error, IZH_BAD_ARTIFACT, "%s has %s, so there is nothing to run", file,
                  root.dispatches.empty() ? "no dispatches" : "no variants");
    }
    return IZH_OK;
  }

  // Bytes of the space that a binding may lie in.
  uint64_t space_bytes(Space space) const {
    switch (space) {
      case Space::Arena:
        return root.plan.arena_bytes;
      case Space::Weights:
        return root.weights_section.size;
      case Space::Constants:
        return root.constants_section.size;
      default:
        return 0;
    }
  }

  izh_status check_binding(size_t dispatch, uint32_t index, const BindingFacts& binding) const {
    const uint32_t space = static_cast<uint32_t>(binding.space);
    if (space >= kSpaces) {
      return fail(error, IZH_BAD_ARTIFACT,
                  "binding %u of dispatch %zu of %s lies in the unknown space %u", index, dispatch,
                  file, space);
    }
    if (binding.space == Space::State || binding.space == Space::Input) {
      const uint64_t count = binding.space == Space::State ? root.states.size() : kInputs;
      if (binding.offset < count && binding.size == 0) return IZH_OK;
      return fail(error, IZH_BAD_ARTIFACT,
                  "binding %u of dispatch %zu of %s names %s %llu (size %llu), but there are %llu "
                  "and their bindings have size 0",
                  index, dispatch, file, kSpaceNames[space], static_cast<Number>(binding.offset),
                  static_cast<Number>(binding.size), static_cast<Number>(count));
    }
    const uint64_t bytes = space_bytes(binding.space);
    if (binding.size == 0 || binding.size > bytes || binding.offset > bytes - binding.size ||
        binding.offset % kBindingAlignment != 0) {
      return fail(error, IZH_BAD_ARTIFACT,
                  "binding %u of dispatch %zu of %s is %llu bytes at %llu, which has to be inside "
                  "the %s of %llu bytes and start at a multiple of %llu",
                  index, dispatch, file, static_cast<Number>(binding.size),
                  static_cast<Number>(binding.offset), kSpaceNames[space],
                  static_cast<Number>(bytes), static_cast<Number>(kBindingAlignment));
    }
    return IZH_OK;
  }

  // The greatest count that an extent can have in a step.
  uint64_t most(Extent extent) const {
    switch (extent) {
      case Extent::Fixed:
        return 1;
      case Extent::Outputs:
        return root.plan.max_outputs;
      case Extent::Tiles:
        return root.plan.max_tiles();
      case Extent::Merges:
        return root.plan.max_partials ? root.plan.max_partials : 1;
      default:
        return root.plan.max_tokens;
    }
  }

  izh_status check_dispatch(size_t index) const {
    const DispatchFacts& dispatch = root.dispatches[index];
    if (dispatch.kernel >= root.kernels.size()) {
      return fail(error, IZH_BAD_ARTIFACT, "dispatch %zu of %s runs kernel %u, but there are %zu",
                  index, file, dispatch.kernel, root.kernels.size());
    }
    if (static_cast<uint32_t>(dispatch.extent) >= kExtents) {
      return fail(error, IZH_BAD_ARTIFACT, "dispatch %zu of %s has the unknown extent %u", index,
                  file, static_cast<uint32_t>(dispatch.extent));
    }
    const uint64_t limit = kMaxUnits / most(dispatch.extent);
    if (dispatch.units < 1 || dispatch.units > limit) {
      return fail(error, IZH_BAD_ARTIFACT,
                  "dispatch %zu of %s has %llu units, but 1 to %llu are allowed", index, file,
                  static_cast<Number>(dispatch.units), static_cast<Number>(limit));
    }
    if (dispatch.grain < 1) {
      return fail(error, IZH_BAD_ARTIFACT,
                  "dispatch %zu of %s hands out pieces of 0 units, so it would never end", index,
                  file);
    }
    for (uint32_t i = 0; i < dispatch.binding_count; ++i) {
      IZH_TRY(check_binding(index, i, root.bindings[dispatch.first_binding + i]));
    }
    return IZH_OK;
  }

  izh_status check_variant(const VariantFacts& variant) const {
    if (variant.entry_count != root.kernels.size()) {
      return fail(error, IZH_BAD_ARTIFACT, "variant %s of %s has %u kernels, but the plan has %zu",
                  variant.name, file, variant.entry_count, root.kernels.size());
    }
    for (uint32_t i = 0; i < variant.entry_count; ++i) {
      const uint32_t entry = root.entries[variant.first_entry + i];
      if (entry >= variant.code.size) {
        return fail(error, IZH_BAD_ARTIFACT,
                    "kernel %s of variant %s of %s starts at %u, but the code has %llu bytes",
                    root.kernels[i], variant.name, file, entry,
                    static_cast<Number>(variant.code.size));
      }
    }
    return IZH_OK;
  }

  izh_status check_weight(const WeightFacts& weight) const {
    const uint64_t bytes =
        weight.constant ? root.constants_section.size : root.weights_section.size;
    if (weight.size > bytes || weight.offset > bytes - weight.size) {
      return fail(error, IZH_BAD_ARTIFACT,
                  "tensor %s of %s is said to be %llu bytes at %llu of the %s of %llu bytes",
                  weight.name, file, static_cast<Number>(weight.size),
                  static_cast<Number>(weight.offset), weight.constant ? "constants" : "weights",
                  static_cast<Number>(bytes));
    }
    return IZH_OK;
  }
};

}  // namespace

izh_status plan_verify(const Root& root, const char* name, izh_error* error) {
  const PlanVerifier verifier{root, name, error};
  IZH_TRY(verifier.check_limits());
  for (size_t i = 0; i < root.dispatches.size(); ++i) IZH_TRY(verifier.check_dispatch(i));
  for (const VariantFacts& variant : root.variants) IZH_TRY(verifier.check_variant(variant));
  for (const WeightFacts& weight : root.weights) IZH_TRY(verifier.check_weight(weight));
  return IZH_OK;
}

}  // namespace izh
