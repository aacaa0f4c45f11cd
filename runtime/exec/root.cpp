// The only file that knows flatbuffers: verifies the buffer and copies its
// tables into plain structs.

#include "runtime/exec/root.h"

#include <cstring>

#include "runtime/base/status.h"
#include "runtime/schema/artifact_generated.h"

namespace izh {
namespace {

// More than any model needs; they bound what a small hostile file, whose
// tables may all be the same bytes, makes of memory and time.
constexpr uint64_t kMaxRootBytes = uint64_t{256} << 20;
constexpr uint32_t kMaxTables = 400000;
constexpr uint32_t kMaxDepth = 16;
constexpr uint32_t kMaxDispatches = 65536;
constexpr uint32_t kMaxBindings = 64;
constexpr uint32_t kMaxKernels = 65536;
constexpr uint32_t kMaxVariants = 64;
constexpr uint32_t kMaxStates = 4096;

const char* text_of(const flatbuffers::String* text) { return text ? text->c_str() : ""; }

template <typename T>
uint32_t count_of(const flatbuffers::Vector<T>* list) {
  return list ? list->size() : 0;
}

// The flatbuffers verifier checks that structs lie inside the buffer, but not
// that those of a vector are aligned.
template <typename T>
T copy_of(const T* in_buffer) {
  T copy;
  memcpy(static_cast<void*>(&copy), static_cast<const void*>(in_buffer), sizeof(copy));
  return copy;
}

SectionFacts section_of(const schema::Section* in_buffer) {
  if (!in_buffer) return {};
  const schema::Section section = copy_of(in_buffer);
  return {section.offset(), section.size(), section.hash()};
}

struct Reader {
  const char* file;
  Root* out;
  izh_error* error;

  izh_status too_many(const char* what, uint32_t found, uint32_t limit) {
    return fail(error, IZH_BAD_ARTIFACT, "%s has %u %s, but at most %u are allowed", file, found,
                what, limit);
  }

  izh_status no_memory() {
    return fail(error, IZH_OUT_OF_MEMORY, "no memory is left for the tables of %s", file);
  }

  izh_status read_model(const schema::Artifact* artifact) {
    const schema::Model* model = artifact->model();
    ModelFacts& facts = out->model;
    facts.architecture = text_of(model->architecture());
    facts.name = text_of(model->name());
    facts.chat_template = text_of(model->chat_template());
    facts.parameters = model->parameters();
    facts.vocabulary = model->vocabulary();
    facts.context = model->context();
    facts.embedding = model->embedding();
    facts.layers = model->layers();
    const schema::Provenance* provenance = artifact->provenance();
    facts.compiler = text_of(provenance ? provenance->compiler() : nullptr);
    facts.command_line = text_of(provenance ? provenance->command_line() : nullptr);
    facts.source = text_of(provenance ? provenance->source() : nullptr);
    facts.source_hash = text_of(provenance ? provenance->source_hash() : nullptr);
    facts.recipe = text_of(provenance ? provenance->recipe() : nullptr);
    out->weights_section = section_of(artifact->weights_section());
    out->constants_section = section_of(artifact->constants_section());
    out->tokenizer_section = section_of(artifact->tokenizer_section());
    return IZH_OK;
  }

  izh_status read_dispatch(const schema::Dispatch* dispatch) {
    const uint32_t count = count_of(dispatch->bindings());
    if (count > kMaxBindings) return too_many("bindings of a dispatch", count, kMaxBindings);
    DispatchFacts facts = {};
    facts.units = dispatch->units();
    facts.kernel = dispatch->kernel();
    facts.grain = dispatch->grain();
    facts.first_binding = static_cast<uint32_t>(out->bindings.size());
    facts.binding_count = count;
    facts.extent = static_cast<Extent>(dispatch->extent());
    if (!out->dispatches.push(facts)) return no_memory();
    for (uint32_t i = 0; i < count; ++i) {
      const schema::Binding binding = copy_of(dispatch->bindings()->Get(i));
      const BindingFacts bound = {binding.offset(), binding.size(),
                                  static_cast<Space>(binding.space())};
      if (!out->bindings.push(bound)) return no_memory();
    }
    return IZH_OK;
  }

  izh_status read_plan(const schema::Plan* plan) {
    out->plan = {plan->arena_bytes(), plan->logits_offset(), plan->max_tokens(),
                 plan->max_outputs(), plan->tile_tokens(),   plan->page_tokens(),
                 plan->span_tokens(), plan->max_partials()};
    const uint32_t kernels = count_of(plan->kernels());
    if (kernels > kMaxKernels) return too_many("kernels", kernels, kMaxKernels);
    if (!out->kernels.reserve(kernels)) return no_memory();
    for (uint32_t i = 0; i < kernels; ++i) {
      if (!out->kernels.push(text_of(plan->kernels()->Get(i)))) return no_memory();
    }
    const uint32_t dispatches = count_of(plan->dispatches());
    if (dispatches > kMaxDispatches) return too_many("dispatches", dispatches, kMaxDispatches);
    for (uint32_t i = 0; i < dispatches; ++i) IZH_TRY(read_dispatch(plan->dispatches()->Get(i)));
    const uint32_t states = count_of(plan->states());
    if (states > kMaxStates) return too_many("states", states, kMaxStates);
    for (uint32_t i = 0; i < states; ++i) {
      const schema::State* state = plan->states()->Get(i);
      if (!out->states.push(state->page_bytes())) return no_memory();
      if (!out->per_sequence.push(state->per_sequence())) return no_memory();
      if (!out->windows.push(state->window())) return no_memory();
    }
    return IZH_OK;
  }

  izh_status read_variants(const schema::Artifact* artifact) {
    const uint32_t count = count_of(artifact->variants());
    if (count > kMaxVariants) return too_many("variants", count, kMaxVariants);
    for (uint32_t i = 0; i < count; ++i) {
      const schema::Variant* variant = artifact->variants()->Get(i);
      VariantFacts facts = {};
      facts.name = text_of(variant->name());
      facts.arch = text_of(variant->arch());
      facts.features = variant->features();
      facts.rank = variant->rank();
      facts.first_entry = static_cast<uint32_t>(out->entries.size());
      facts.entry_count = count_of(variant->entries());
      facts.code = section_of(variant->code());
      if (facts.entry_count > kMaxKernels)
        return too_many("entries", facts.entry_count, kMaxKernels);
      if (!out->variants.push(facts)) return no_memory();
      if (!out->entries.reserve(out->entries.size() + facts.entry_count)) return no_memory();
      for (uint32_t k = 0; k < facts.entry_count; ++k) {
        if (!out->entries.push(variant->entries()->Get(k))) return no_memory();
      }
    }
    return IZH_OK;
  }

  izh_status read_weights(const schema::Artifact* artifact) {
    const uint32_t count = count_of(artifact->weights());
    for (uint32_t i = 0; i < count; ++i) {
      const schema::Weight* weight = artifact->weights()->Get(i);
      const WeightFacts facts = {text_of(weight->name()), weight->offset(), weight->size(),
                                 weight->hash(), weight->constant()};
      if (!out->weights.push(facts)) return no_memory();
    }
    return IZH_OK;
  }
};

}  // namespace

izh_status root_read(const uint8_t* data, uint64_t size, const char* name, Root* out,
                     izh_error* error) {
  if (size < 16 || size > kMaxRootBytes) {
    return fail(
        error, IZH_BAD_ARTIFACT, "the root of %s has %llu bytes, but 16 to %llu are allowed", name,
        static_cast<unsigned long long>(size), static_cast<unsigned long long>(kMaxRootBytes));
  }
  if (!schema::ArtifactBufferHasIdentifier(data)) {
    return fail(error, IZH_BAD_ARTIFACT, "the root of %s lacks the identifier %s: compile it again",
                name, schema::ArtifactIdentifier());
  }
  flatbuffers::Verifier verifier(data, static_cast<size_t>(size), kMaxDepth, kMaxTables);
  if (!schema::VerifyArtifactBuffer(verifier)) {
    return fail(error, IZH_BAD_ARTIFACT,
                "the root of %s is not a well-formed flatbuffer: the file is damaged, copy or "
                "compile it again",
                name);
  }
  const schema::Artifact* artifact = schema::GetArtifact(data);
  Reader reader{name, out, error};
  IZH_TRY(reader.read_model(artifact));
  IZH_TRY(reader.read_plan(artifact->plan()));
  IZH_TRY(reader.read_variants(artifact));
  return reader.read_weights(artifact);
}

}  // namespace izh
