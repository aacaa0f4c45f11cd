// The facts and the plan of an artifact as plain structs, read from its
// flatbuffer. Strings point into the artifact. Nothing here is checked against
// the machine.

#pragma once

#include <cstdint>

#include "runtime/base/array.h"
#include "runtime/include/izh/izh.h"

namespace izh {

// Values as in runtime/schema/artifact.fbs.
enum class Space : uint8_t { Arena, Weights, Constants, State, Input };
enum class Extent : uint8_t { Fixed, Tokens, Outputs, Tiles, Merges, Sequences };
constexpr uint32_t kSpaces = 5;
constexpr uint32_t kExtents = 6;

// Arrays that the runtime fills before a step, in the order of plan::Input.
enum class Input : uint8_t {
  Ids,
  Positions,
  Slots,
  OutputRows,
  Tiles,
  Pages,
  Parts,
  Merges,
  Sequences,
  WindowSlots,
  WindowPages
};
constexpr uint32_t kInputs = 11;

struct SectionFacts {
  uint64_t offset;
  uint64_t size;
  uint64_t hash;
};

struct BindingFacts {
  uint64_t offset;
  uint64_t size;
  Space space;
};

struct DispatchFacts {
  uint64_t units;
  uint32_t kernel;
  uint32_t grain;
  uint32_t first_binding;  // in Root::bindings
  uint32_t binding_count;
  Extent extent;
};

struct VariantFacts {
  const char* name;
  const char* arch;
  uint64_t features;
  uint32_t rank;
  uint32_t first_entry;  // in Root::entries
  uint32_t entry_count;
  SectionFacts code;
};

struct WeightFacts {
  const char* name;
  uint64_t offset;
  uint64_t size;
  uint64_t hash;
  bool constant;
};

struct ModelFacts {
  const char* architecture;
  const char* name;
  const char* chat_template;
  const char* compiler;
  const char* command_line;
  const char* source;
  const char* source_hash;
  const char* recipe;
  uint64_t parameters;
  uint32_t vocabulary;
  uint32_t context;
  uint32_t embedding;
  uint32_t layers;
};

struct PlanFacts {
  uint64_t arena_bytes;
  uint64_t logits_offset;
  uint32_t max_tokens;
  uint32_t max_outputs;
  uint32_t tile_tokens;
  uint32_t page_tokens;
  uint32_t span_tokens;   // 0: tiles never take single spans
  uint32_t max_partials;  // 0 exactly then

  // Tiles of one step: each token may be one, and each partial.
  uint64_t max_tiles() const { return uint64_t{max_tokens} + max_partials; }
};

struct Root {
  ModelFacts model;
  PlanFacts plan;
  SectionFacts weights_section;
  SectionFacts constants_section;
  SectionFacts tokenizer_section;
  Array<const char*> kernels;
  Array<DispatchFacts> dispatches;
  Array<BindingFacts> bindings;
  Array<uint64_t> states;    // bytes of a page of each
  Array<bool> per_sequence;  // of each state: one page a sequence, none for tokens
  Array<uint32_t> windows;   // of each state: how many tokens back are read; 0: all
  Array<VariantFacts> variants;
  Array<uint32_t> entries;
  Array<WeightFacts> weights;
};

// Reads the flatbuffer of `size` bytes at `data` (64-byte aligned) of the file
// `name`. `data` has to outlive `out`.
[[nodiscard]] izh_status root_read(const uint8_t* data, uint64_t size, const char* name, Root* out,
                                   izh_error* error);

}  // namespace izh
