// Creating and ending contexts and sequences.

#include "runtime/exec/context.h"

#include <cstdio>

#include "runtime/base/status.h"
#include "runtime/platform/cores.h"
#include "runtime/platform/memory.h"
#include "runtime/schema/window.h"

namespace izh {
namespace {

using Number = unsigned long long;

constexpr uint32_t kDefaultTokens = 4096;
constexpr uint32_t kMaxTokens = 1u << 24;
constexpr uint32_t kMaxSequences = 4096;
constexpr uint64_t kLargePool = uint64_t{16} << 20;

izh_status no_memory(izh_error* error) {
  return fail(error, IZH_OUT_OF_MEMORY, "no memory is left for the context's tables");
}

// The greatest of the states' windows; 0: none has one.
uint32_t greatest_window(const Root& root) {
  uint32_t most = 0;
  for (const uint32_t window : root.windows) most = window > most ? window : most;
  return most;
}

izh_status set_sizes(izh_context* context, const izh_context_options& options, izh_error* error) {
  const uint32_t trained = context->model->image.root.model.context;
  context->tokens = options.tokens;
  if (context->tokens == 0) {
    context->tokens = trained && trained < kDefaultTokens ? trained : kDefaultTokens;
  }
  context->max_sequences = options.sequences ? options.sequences : 1;
  if (context->tokens > kMaxTokens || context->max_sequences > kMaxSequences) {
    return fail(error, IZH_LIMIT,
                "a context for %u tokens in %u sequences was asked for, but at most %u in %u are "
                "possible",
                context->tokens, context->max_sequences, kMaxTokens, kMaxSequences);
  }
  // The last page of each sequence may be partly empty.
  context->pool_pages = context->tokens / kPageTokens + uint64_t{context->max_sequences};
  const Root& root = context->model->image.root;
  if (const uint32_t window = greatest_window(root)) {
    const uint64_t ring = schema::window_pages(window, context->model->step_tokens(), kPageTokens);
    if (ring * context->max_sequences < context->pool_pages) {
      context->ring = static_cast<uint32_t>(ring);
    }
  }
  return IZH_OK;
}

// Of the pool of a state: of pages of tokens, of a ring or of one page a sequence.
uint64_t pool_pages(const izh_context& context, size_t state) {
  const Root& root = context.model->image.root;
  if (root.per_sequence[state]) return context.max_sequences;
  if (root.windows[state] && context.ring) return uint64_t{context.ring} * context.max_sequences;
  return context.pool_pages;
}

uint64_t pool_bytes(const izh_context& context, size_t state) {
  return context.model->image.root.states[state] * pool_pages(context, state);
}

// On a device the weights are copies, and its free memory is the limit.
void count_device(const izh_model& model, izh_memory* memory) {
  const Root& root = model.image.root;
  memory->file = root.weights_section.size + root.constants_section.size;
  memory->file_mapped = false;
  memory->buffers += device_row_scratch_bytes(model);
  izh_error ignored;
  if (device_free_bytes(model.device, &memory->limit, &ignored) != IZH_OK) memory->limit = 0;
  // They are there already if this isn't the model's first context.
  if (model.device_image.load(std::memory_order_acquire)) memory->limit += memory->file;
}

// Of a context whose sizes are set. Sums that are too large end at the greatest
// number.
izh_memory memory_of(const izh_context& context) {
  const izh_model& model = *context.model;
  izh_memory memory = {};
  const Root& root = model.image.root;
  memory.buffers = root.plan.arena_bytes;
  for (size_t i = 0; i < root.states.size(); ++i) {
    const uint64_t pages = pool_pages(context, i);
    uint64_t bytes = 0;
    if (__builtin_mul_overflow(root.states[i], pages, &bytes) ||
        __builtin_add_overflow(memory.cache, bytes, &memory.cache)) {
      memory.cache = UINT64_MAX;
      break;
    }
  }
  memory.file = model.image.size;
  memory.file_mapped = !model.file.copied;
  memory.limit = memory_limit();
  if (model.device) count_device(model, &memory);
  if (__builtin_add_overflow(memory.buffers + memory.file, memory.cache, &memory.peak)) {
    memory.peak = UINT64_MAX;
  }
  return memory;
}

// Before anything is taken. What is mapped doesn't count: the system drops it
// where memory is short.
izh_status check_memory(const izh_context& context, izh_error* error) {
  const izh_memory memory = memory_of(context);
  const uint64_t own = memory.file_mapped ? memory.peak - memory.file : memory.peak;
  if (own <= memory.limit) return IZH_OK;
  if (context.model->device) {
    const DeviceInfo& device = device_info(context.model->device);
    return fail(error, IZH_OUT_OF_MEMORY,
                "%s needs %llu MiB of buffers, %llu MiB of cache for %u tokens and %llu MiB of "
                "weights, but %s (%s) has %llu MiB left: ask for fewer tokens or sequences, or "
                "close what else uses it",
                context.model->path.data(), static_cast<Number>(memory.buffers >> 20),
                static_cast<Number>(memory.cache >> 20), context.tokens,
                static_cast<Number>(memory.file >> 20), device.id, device.name,
                static_cast<Number>(memory.limit >> 20));
  }
  char copied[64] = "";
  if (!memory.file_mapped) {
    snprintf(copied, sizeof(copied), " beside %llu MiB of the file",
             static_cast<Number>(memory.file >> 20));
  }
  return fail(error, IZH_OUT_OF_MEMORY,
              "%s needs %llu MiB of buffers and %llu MiB of cache for %u tokens%s, but this "
              "process may use %llu MiB: ask for fewer tokens or sequences%s",
              context.model->path.data(), static_cast<Number>(memory.buffers >> 20),
              static_cast<Number>(memory.cache >> 20), context.tokens, copied,
              static_cast<Number>(memory.limit >> 20),
              memory.file_mapped ? "" : ", or map the file");
}

izh_status make_buffers(izh_context* context, izh_error* error) {
  const Root& root = context->model->image.root;
  context->arena = pages_alloc(root.plan.arena_bytes, /*huge=*/true);
  if (!context->arena) {
    return fail(error, IZH_OUT_OF_MEMORY, "the system refuses %llu MiB for the buffers of %s",
                static_cast<Number>(root.plan.arena_bytes >> 20), context->model->path.data());
  }
  for (size_t i = 0; i < root.states.size(); ++i) {
    // Small pages where a huge one would be a good part of the pool: a short
    // conversation then touches little of it.
    const uint64_t bytes = pool_bytes(*context, i);
    void* pool = pages_alloc(bytes, /*huge=*/bytes >= kLargePool);
    if (!pool || !context->pools.push(pool)) {
      if (pool) pages_free(pool, bytes);
      return fail(error, IZH_OUT_OF_MEMORY,
                  "the system refuses the cache of %s (%llu MiB a layer): ask for fewer tokens",
                  context->model->path.data(), static_cast<Number>(bytes >> 20));
    }
  }
  return IZH_OK;
}

// Where the arrays of a step are in one block.
struct InputLayout {
  uint64_t offsets[kInputs];
  uint64_t bytes;
};

InputLayout lay_out_inputs(const izh_context& context) {
  const PlanFacts& plan = context.model->image.root.plan;
  // A step names each page at most once.
  const uint64_t counts[kInputs] = {
      plan.max_tokens,      plan.max_tokens,    plan.max_tokens,      plan.max_outputs,
      plan.max_tiles() * 4, context.pool_pages, plan.max_tiles() * 4, plan.max_partials * 4u,
      plan.max_tokens * 4u, plan.max_tokens,    context.pool_pages};
  InputLayout layout = {};
  for (uint32_t i = 0; i < kInputs; ++i) {
    layout.offsets[i] = layout.bytes;
    const uint64_t lines =
        (counts[i] * sizeof(int32_t) + kBindingAlignment - 1) / kBindingAlignment;
    layout.bytes += lines * kBindingAlignment;
  }
  return layout;
}

void place_inputs(izh_context* context, void* block, const InputLayout& layout) {
  for (uint32_t i = 0; i < kInputs; ++i) {
    context->inputs[i] = reinterpret_cast<int32_t*>(static_cast<char*>(block) + layout.offsets[i]);
  }
}

izh_status make_inputs(izh_context* context, izh_error* error) {
  const InputLayout layout = lay_out_inputs(*context);
  // One more line for aligning the first.
  const uint64_t total = (layout.bytes + kBindingAlignment) / sizeof(int32_t);
  if (!context->input_memory.resize(static_cast<size_t>(total))) return no_memory(error);
  char* start = reinterpret_cast<char*>(context->input_memory.data());
  place_inputs(context, start + (-reinterpret_cast<uintptr_t>(start) & (kBindingAlignment - 1)),
               layout);
  return IZH_OK;
}

izh_status bind(izh_context* context, izh_error* error) {
  void* inputs[kInputs];
  for (uint32_t i = 0; i < kInputs; ++i) inputs[i] = context->inputs[i];
  const Spaces spaces = {context->arena, context->pools.data(), inputs};
  return program_bind(*context->model, spaces, &context->program) ? IZH_OK : no_memory(error);
}

izh_status make_on_device(izh_context* context, izh_error* error) {
  const Root& root = context->model->image.root;
  const InputLayout layout = lay_out_inputs(*context);
  Array<uint64_t> pools;
  if (!pools.resize(root.states.size())) return no_memory(error);
  for (size_t i = 0; i < pools.size(); ++i) pools[i] = pool_bytes(*context, i);
  const DeviceSizes sizes = {root.plan.arena_bytes, pools.data(), layout.bytes, layout.offsets};
  IZH_TRY(device_program_create(*context->model, sizes, &context->device, error));
  place_inputs(context, device_program_inputs(context->device), layout);
  return IZH_OK;
}

izh_status make_threads(izh_context* context, uint32_t threads, izh_error* error) {
  Cores cores;
  usable_cores(&cores);
  return team_create(threads ? threads : default_threads(cores), cores, &context->team, error);
}

bool has_fixed_state(const izh_context& context) {
  for (const bool fixed : context.model->image.root.per_sequence) {
    if (fixed) return true;
  }
  return false;
}

// Whether a ring still has what the token at position `length` sees.
bool ring_reaches(const izh_sequence& sequence, uint32_t length) {
  const uint32_t ring = sequence.context->ring;
  if (ring == 0 || length == 0) return true;
  const uint32_t window = greatest_window(sequence.context->model->image.root);
  const uint32_t first = length >= window ? length - window + 1 : 0;
  return first / kPageTokens + ring > (sequence.written - 1) / kPageTokens;
}

// The lowest number that no sequence has; fewer than max_sequences have one.
uint32_t free_slot(const izh_context& context) {
  for (uint32_t slot = 0;; ++slot) {
    bool taken = false;
    for (const izh_sequence* other : context.sequences) taken |= other->slot == slot;
    if (!taken) return slot;
  }
}

// Reading ahead what memory cannot hold would only push it out again.
void read_ahead(izh_context* context) {
  const izh_model& model = *context->model;
  const SectionFacts& weights = model.image.root.weights_section;
  if (weights.size >= memory_limit() / 2) return;
  context->read_ahead = read_ahead_start(model.file, weights.offset, weights.size);
}

izh_status build(izh_context* context, const izh_context_options& options, izh_error* error) {
  if (!context->model->runs) {
    return fail(error, IZH_INVALID_ARGUMENT, "%s was opened to be looked into, not to be run",
                context->model->path.data());
  }
  IZH_TRY(set_sizes(context, options, error));
  IZH_TRY(check_memory(*context, error));
  if (!context->pages.init(static_cast<uint32_t>(context->pool_pages))) return no_memory(error);
  if (context->model->device) {
    IZH_TRY(make_on_device(context, error));
    return make_threads(context, /*threads=*/1, error);
  }
  read_ahead(context);
  IZH_TRY(make_buffers(context, error));
  IZH_TRY(make_inputs(context, error));
  IZH_TRY(bind(context, error));
  return make_threads(context, options.threads, error);
}

}  // namespace

void sequence_cover(izh_sequence* sequence, uint32_t length) {
  while (sequence->pages.size() < pages_for(length)) {
    // Room was reserved when the sequence was made.
    (void)sequence->pages.push(sequence->context->pages.take());
  }
}

void sequence_cut(izh_sequence* sequence, uint32_t length) {
  while (sequence->pages.size() > pages_for(length)) {
    sequence->context->pages.give(sequence->pages.back());
    sequence->pages.pop();
  }
}

}  // namespace izh

using namespace izh;

izh_status izh_context_create(const izh_model* model, const izh_context_options* options,
                              izh_context** out, izh_error* error) {
  if (!model || !out) {
    return fail(error, IZH_INVALID_ARGUMENT,
                "izh_context_create needs a model and a place for the context");
  }
  *out = nullptr;
  izh_context* context = heap_create<izh_context>();
  if (!context) return no_memory(error);
  context->model = model;
  const izh_status status = build(context, options ? *options : izh_context_options(), error);
  if (status != IZH_OK) {
    izh_context_destroy(context);
    return status;
  }
  *out = context;
  return IZH_OK;
}

izh_status izh_context_memory(const izh_model* model, const izh_context_options* options,
                              izh_memory* out, izh_error* error) {
  if (!model || !out) {
    return fail(error, IZH_INVALID_ARGUMENT,
                "izh_context_memory needs a model and a place for the numbers");
  }
  izh_context context;
  context.model = model;
  IZH_TRY(set_sizes(&context, options ? *options : izh_context_options(), error));
  *out = memory_of(context);
  return IZH_OK;
}

void izh_context_destroy(izh_context* context) {
  if (!context) return;
  team_destroy(context->team);
  read_ahead_stop(context->read_ahead);
  while (!context->sequences.empty()) izh_sequence_destroy(context->sequences.back());
  device_program_destroy(context->device);
  const Root& root = context->model->image.root;
  for (size_t i = 0; i < context->pools.size(); ++i) {
    pages_free(context->pools[i], pool_bytes(*context, i));
  }
  pages_free(context->arena, root.plan.arena_bytes);
  heap_destroy(context);
}

uint32_t izh_context_threads(const izh_context* context) { return team_threads(context->team); }

uint32_t izh_context_tokens(const izh_context* context) { return context->tokens; }

izh_status izh_sequence_create(izh_context* context, izh_sequence** out, izh_error* error) {
  if (!context || !out) {
    return fail(error, IZH_INVALID_ARGUMENT,
                "izh_sequence_create needs a context and a place for the sequence");
  }
  *out = nullptr;
  if (context->sequences.size() >= context->max_sequences) {
    return fail(error, IZH_LIMIT,
                "the context was created for %u sequences and has as many: destroy one, or create "
                "it for more",
                context->max_sequences);
  }
  izh_sequence* sequence = heap_create<izh_sequence>();
  if (!sequence) return no_memory(error);
  sequence->context = context;
  sequence->slot = free_slot(*context);
  if (!sequence->pages.reserve(pages_for(context->tokens)) || !context->sequences.push(sequence)) {
    heap_destroy(sequence);
    return no_memory(error);
  }
  *out = sequence;
  return IZH_OK;
}

void izh_sequence_destroy(izh_sequence* sequence) {
  if (!sequence) return;
  izh_context* context = sequence->context;
  sequence_cut(sequence, 0);
  context->used_tokens -= sequence->length;
  for (izh_sequence*& entry : context->sequences) {
    if (entry != sequence) continue;
    entry = context->sequences.back();
    context->sequences.pop();
    break;
  }
  heap_destroy(sequence);
}

uint32_t izh_sequence_length(const izh_sequence* sequence) { return sequence->length; }

izh_status izh_sequence_truncate(izh_sequence* sequence, uint32_t length, izh_error* error) {
  if (!sequence) return fail(error, IZH_INVALID_ARGUMENT, "izh_sequence_truncate needs a sequence");
  if (length > sequence->length) {
    return fail(error, IZH_INVALID_ARGUMENT,
                "a sequence of %u tokens cannot be truncated to %u: it can only become shorter",
                sequence->length, length);
  }
  // Such a state is what all tokens made of it: there is no way back but to the start.
  if (length != 0 && length != sequence->length && has_fixed_state(*sequence->context)) {
    return fail(error, IZH_LIMIT,
                "%s keeps a state that can't go back: a sequence of %u tokens cannot be truncated "
                "to %u; truncate it to 0 and give its tokens again",
                sequence->context->model->path.data(), sequence->length, length);
  }
  if (length != sequence->length && !ring_reaches(*sequence, length)) {
    return fail(error, IZH_LIMIT,
                "%s keeps only the last tokens in layers with a window, so a sequence that had %u "
                "tokens cannot be truncated to %u; truncate it to 0 and give its tokens again",
                sequence->context->model->path.data(), sequence->written, length);
  }
  sequence_cut(sequence, length);
  sequence->context->used_tokens -= sequence->length - length;
  sequence->length = length;
  if (length == 0) sequence->written = 0;
  return IZH_OK;
}
