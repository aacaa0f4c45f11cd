// Opening, describing and closing models.

#include "runtime/exec/model.h"

#include <cstring>

#include "runtime/base/status.h"
#include "runtime/exec/device_image.h"

namespace izh {
namespace {

izh_status keep_reasons(izh_model* model, const Machine& machine, izh_error* error) {
  const Root& root = model->image.root;
  if (!model->reasons.resize(root.variants.size() * kReasonBytes)) {
    return fail(error, IZH_OUT_OF_MEMORY, "no memory is left for the model");
  }
  for (uint32_t i = 0; i < root.variants.size(); ++i) {
    variant_reason(root, machine, i, model->variant, model->reasons.data() + i * kReasonBytes,
                   kReasonBytes);
  }
  return IZH_OK;
}

// `model->file` is set. What fails here leaves the rest to izh_model_close.
izh_status open_image(izh_model* model, const char* name, const izh_model_options* options,
                      bool run, izh_error* error) {
  IZH_TRY(device_open(&model->device, error));
  if (!model->path.append(name, strlen(name) + 1)) {
    return fail(error, IZH_OUT_OF_MEMORY, "no memory is left for the model");
  }
  Image& image = model->image;
  IZH_TRY(image_verify(model->file.data, model->file.size, name, &image, error));
  const Machine machine = machine_of(model->device);
  IZH_TRY(variant_choose(image.root, name, machine, options, &model->variant, error));
  IZH_TRY(keep_reasons(model, machine, error));
  const SectionFacts& tokenizer = image.root.tokenizer_section;
  if (tokenizer.size) {
    IZH_TRY(image_check_hash(image, name, "the tokenizer", tokenizer.offset, tokenizer.size,
                             tokenizer.hash, error));
    model->tokenizer = {image.data + tokenizer.offset, static_cast<size_t>(tokenizer.size)};
  }
  if (model->variant == kNoVariant) return IZH_OK;
  const SectionFacts& code = image.root.variants[model->variant].code;
  IZH_TRY(image_check_hash(image, name, "the code", code.offset, code.size, code.hash, error));
  model->runs = run && !(options && options->no_run);
  if (!model->runs) return IZH_OK;
  if (model->device) return device_code_check(*model, error);
  return code_map(model->file, name, code.offset, code.size, &model->code, error);
}

izh_status open_mapped(MappedFile file, const char* name, const izh_model_options* options,
                       bool run, izh_model** out, izh_error* error) {
  *out = nullptr;
  izh_model* model = heap_create<izh_model>();
  if (!model) {
    file_unmap(&file);
    return fail(error, IZH_OUT_OF_MEMORY, "no memory is left for the model");
  }
  model->file = file;
  const izh_status status = open_image(model, name, options, run, error);
  if (status != IZH_OK) {
    izh_model_close(model);
    return status;
  }
  *out = model;
  return IZH_OK;
}

}  // namespace

izh_status model_open_memory(const uint8_t* data, uint64_t size, const char* name,
                             const izh_model_options* options, bool run, izh_model** out,
                             izh_error* error) {
  return open_mapped({data, size, -1}, name, options, run, out, error);
}

}  // namespace izh

using namespace izh;

izh_status izh_model_open(const char* path, const izh_model_options* options, izh_model** out,
                          izh_error* error) {
  if (!out) return fail(error, IZH_INVALID_ARGUMENT, "izh_model_open needs a place for the model");
  *out = nullptr;
  if (!path) return fail(error, IZH_INVALID_ARGUMENT, "izh_model_open needs a path");
  MappedFile file;
  const bool copy = options && options->load == IZH_LOAD_READ;
  IZH_TRY(copy ? file_read(path, &file, error) : file_map(path, &file, error));
  return open_mapped(file, path, options, /*run=*/true, out, error);
}

void izh_model_close(izh_model* model) {
  if (!model) return;
  void* text = model->text.load(std::memory_order_acquire);
  void (*destroy)(void*) = model->text_destroy.load(std::memory_order_acquire);
  if (text && destroy) destroy(text);
  device_image_destroy(model->device, model->device_image.load(std::memory_order_acquire));
  device_close(model->device);
  code_unmap(&model->code);
  file_unmap(&model->file);
  heap_destroy(model);
}

void izh_model_get_info(const izh_model* model, izh_model_info* out) {
  const Root& root = model->image.root;
  const ModelFacts& facts = root.model;
  const bool runs_here = model->variant != kNoVariant;
  *out = izh_model_info();
  out->architecture = facts.architecture;
  out->name = facts.name;
  out->variant = runs_here ? root.variants[model->variant].name : "";
  out->chat_template = facts.chat_template;
  out->compiler = facts.compiler;
  out->command_line = facts.command_line;
  out->source = facts.source;
  out->source_hash = facts.source_hash;
  out->recipe = facts.recipe;
  out->vocabulary = facts.vocabulary;
  out->context = facts.context;
  out->embedding = facts.embedding;
  out->layers = facts.layers;
  out->max_step_tokens = model->step_tokens();
  out->parameters = facts.parameters;
  out->file_bytes = model->image.size;
  out->weight_bytes = root.weights_section.size + root.constants_section.size;
  out->code_bytes = runs_here ? root.variants[model->variant].code.size : 0;
  out->arena_bytes = root.plan.arena_bytes;
  for (size_t i = 0; i < root.states.size(); ++i) {
    if (root.per_sequence[i]) continue;
    const uint64_t bytes = root.states[i] / root.plan.page_tokens;
    (root.windows[i] ? out->window_bytes_per_token : out->cache_bytes_per_token) += bytes;
    if (root.windows[i] > out->window) out->window = root.windows[i];
  }
  out->variants = static_cast<uint32_t>(root.variants.size());
  out->has_tokenizer = !model->tokenizer.empty();
}

izh_status izh_model_variant(const izh_model* model, uint32_t index, const char** name,
                             const char** reason) {
  const Root& root = model->image.root;
  if (index >= root.variants.size()) return IZH_INVALID_ARGUMENT;
  if (name) *name = root.variants[index].name;
  if (reason) *reason = model->reasons.data() + index * kReasonBytes;
  return IZH_OK;
}

izh_status izh_model_verify(const izh_model* model, izh_error* error) {
  const Image& image = model->image;
  const Root& root = image.root;
  const char* name = model->path.data();
  auto check = [&](const char* what, const SectionFacts& section) -> izh_status {
    if (section.size == 0) return IZH_OK;
    return image_check_hash(image, name, what, section.offset, section.size, section.hash, error);
  };
  // The tensors first: their names say more than their section's.
  for (const WeightFacts& weight : root.weights) {
    if (weight.size == 0) continue;
    const SectionFacts& section = weight.constant ? root.constants_section : root.weights_section;
    IZH_TRY(image_check_hash(image, name, weight.name, section.offset + weight.offset, weight.size,
                             weight.hash, error));
  }
  for (const VariantFacts& variant : root.variants) IZH_TRY(check(variant.name, variant.code));
  IZH_TRY(check("the weights section", root.weights_section));
  IZH_TRY(check("the constants section", root.constants_section));
  return check("the tokenizer section", root.tokenizer_section);
}
