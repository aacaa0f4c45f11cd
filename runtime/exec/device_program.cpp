// Launches of the plan's dispatches in their order. What a step's launches
// depend on are its counts alone: the same counts are the same launches.

#include "runtime/exec/device_program.h"

#include <cstring>

#include "runtime/base/heap.h"
#include "runtime/base/status.h"

namespace izh {

namespace {

// A kernel's arguments are its bindings, the address of the step's counts, the
// first unit and the end of them.
struct Call {
  DeviceKernel kernel;
  uint32_t first_argument;  // in DeviceProgram::arguments
  uint32_t end;             // of units, in DeviceProgram::values
};

struct Launch {
  Call call;
  Call one_row;             // where the count of `rows` is 1
  Extent rows;              // Fixed: there is no such form
  uint64_t one_row_blocks;  // for each of that extent; 0: nothing is launched then
  Extent one_row_extent;
  uint64_t units_each;
  Extent extent;
  bool only_logits;
};

}  // namespace

// What a step launches depends on this.
struct Work {
  StepCounts counts;
  uint32_t chooses;  // not 0: the largest logits are looked for
};

struct DeviceProgram {
  const izh_model* model = nullptr;
  Device* device = nullptr;
  DeviceAddress arena = 0;
  DeviceAddress inputs = 0;  // the counts lie behind the arrays, then scratch memory
  DeviceAddress row_scratch = 0;
  DeviceAddress best = 0;  // an int32 for each row of outputs
  DeviceAddress best_scratch = 0;
  DeviceKernel best_kernel = {};
  Array<DeviceAddress> pools;
  Array<Launch> launches;
  Array<uint64_t> values;  // of all arguments
  Array<void*> arguments;  // their addresses
  bool overlaps = false;
  void* host_inputs = nullptr;
  uint64_t input_bytes = 0;  // of the arrays, a multiple of 16
  Work recorded = {};        // of the graph, or of the last step
  DeviceGraph* graph = nullptr;
};

namespace {

izh_status no_memory(izh_error* error) {
  return fail(error, IZH_OUT_OF_MEMORY, "no memory is left for the context's tables");
}

uint64_t address_of(const DeviceProgram& program, const DeviceImage& image,
                    const DeviceSizes& sizes, const BindingFacts& binding) {
  switch (binding.space) {
    case Space::Arena:
      return program.arena + binding.offset;
    case Space::Weights:
      return image.weights + binding.offset;
    case Space::Constants:
      return image.constants + binding.offset;
    case Space::State:
      return program.pools[binding.offset];
    case Space::Input:
      return program.inputs + sizes.input_offsets[binding.offset];
  }
  return 0;
}

izh_status take_memory(DeviceProgram* program, const DeviceSizes& sizes, uint64_t scratch,
                       izh_error* error) {
  Device* device = program->device;
  const Root& root = program->model->image.root;
  program->input_bytes = (sizes.inputs + 15) / 16 * 16;
  const uint64_t bytes = program->input_bytes + schema::kScratchOffset;
  static_assert(schema::kRowScratchCount == kExtents - 1 &&
                    sizeof(int64_t) * kExtents <= schema::kScratchOffset,
                "the address of the rows' scratch follows the counts");
  IZH_TRY(device_alloc(device, sizes.arena, "the buffers", &program->arena, error));
  IZH_TRY(device_alloc(device, bytes + scratch, "the inputs", &program->inputs, error));
  IZH_TRY(device_alloc(device, sizeof(int32_t) * root.plan.max_outputs, "the choices",
                       &program->best, error));
  IZH_TRY(device_alloc(device, schema::kBestScratchBytes * root.plan.max_outputs, "the choices",
                       &program->best_scratch, error));
  IZH_TRY(device_host_alloc(device, bytes, &program->host_inputs, error));
  const uint64_t row_scratch = device_row_scratch_bytes(*program->model);
  if (row_scratch != 0) {
    IZH_TRY(device_alloc(device, row_scratch, "the scratch", &program->row_scratch, error));
  }
  memcpy(static_cast<char*>(program->host_inputs) + program->input_bytes +
             sizeof(uint64_t) * schema::kRowScratchCount,
         &program->row_scratch, sizeof(program->row_scratch));
  if (!program->pools.reserve(root.states.size())) return no_memory(error);
  for (size_t i = 0; i < root.states.size(); ++i) {
    DeviceAddress pool = 0;
    IZH_TRY(device_alloc(device, sizes.pools[i], "the cache", &pool, error));
    (void)program->pools.push(pool);
  }
  return IZH_OK;
}

struct Binder {
  DeviceProgram* program;
  const DeviceImage& image;
  const DeviceSizes& sizes;
  const Root& root;

  // Room was reserved, so the addresses stay.
  void add(uint64_t value) const {
    (void)program->values.push(value);
    (void)program->arguments.push(&program->values.back());
  }
  void add_bindings(const DispatchFacts& facts) const {
    for (uint32_t i = 0; i < facts.binding_count; ++i) {
      add(address_of(*program, image, sizes, root.bindings[facts.first_binding + i]));
    }
  }
  // `prologue`: of dispatches too, plus 1; 0: none.
  Call call(const DeviceKernel& kernel, size_t dispatch, uint32_t prologue) const {
    const uint32_t first = static_cast<uint32_t>(program->values.size());
    add_bindings(root.dispatches[dispatch]);
    if (prologue != 0) add_bindings(root.dispatches[prologue - 1]);
    add(program->inputs + program->input_bytes);
    add(0);
    add(0);
    return {kernel, first, static_cast<uint32_t>(program->values.size()) - 1};
  }
};

size_t argument_count(const DeviceImage& image, const Root& root) {
  size_t count = root.bindings.size() + 3 * root.dispatches.size();
  for (size_t i = 0; i < image.one_rows.size(); ++i) {
    const uint32_t prologue = image.one_rows[i].prologue;
    count += root.dispatches[i].binding_count + 3;
    if (prologue != 0) count += root.dispatches[prologue - 1].binding_count;
  }
  return count;
}

izh_status bind(DeviceProgram* program, const DeviceImage& image, const DeviceSizes& sizes,
                izh_error* error) {
  const Root& root = program->model->image.root;
  const size_t count = argument_count(image, root);
  if (!program->values.reserve(count) || !program->arguments.reserve(count) ||
      !program->launches.reserve(root.dispatches.size())) {
    return no_memory(error);
  }
  program->overlaps = image.overlaps;
  program->best_kernel = image.best;
  const Binder binder = {program, image, sizes, root};
  for (size_t i = 0; i < root.dispatches.size(); ++i) {
    const DispatchFacts& facts = root.dispatches[i];
    Launch launch = {};
    launch.call = binder.call(image.kernels[facts.kernel], i, 0);
    if (image.one_rows.size() != 0) {
      const OneRow& form = image.one_rows[i];
      launch.rows = form.rows;
      launch.one_row_blocks = form.skipped ? 0 : form.blocks;
      launch.one_row_extent = form.extent;
      launch.one_row = binder.call(form.kernel, i, form.prologue);
    }
    launch.units_each = facts.units;
    launch.extent = facts.extent;
    launch.only_logits = fills_only_logits(root, i);
    (void)program->launches.push(launch);
  }
  return IZH_OK;
}

// What a dispatch starts in a step of these counts; nothing where there are no
// units.
struct Blocks {
  const Call* call;
  DeviceFunction* function;
  uint32_t threads;
  uint64_t units;
  uint32_t shared_bytes;
  // What follows; NULL: nothing.
  DeviceFunction* then = nullptr;
  uint32_t then_threads = 0;
  uint64_t then_units = 0;
};

Blocks blocks_of(const Launch& launch, const int64_t* counts) {
  auto count_of = [&](Extent extent) {
    return static_cast<uint64_t>(counts[static_cast<uint32_t>(extent)]);
  };
  const DeviceKernel& kernel = launch.call.kernel;
  Blocks blocks = {&launch.call, kernel.function, kernel.threads,
                   launch.units_each * count_of(launch.extent), kernel.shared_bytes};
  if (launch.rows != Extent::Fixed && count_of(launch.rows) == 1) {
    const DeviceKernel& one = launch.one_row.kernel;
    blocks = {&launch.one_row, one.function, one.threads,
              launch.one_row_blocks * count_of(launch.one_row_extent), one.shared_bytes};
  }
  for (uint32_t i = 0; i < kernel.form_count; ++i) {
    const DeviceKernel::Form& form = kernel.forms[i];
    const uint64_t units = form_units(form.record, count_of(Extent::Tokens),
                                      count_of(Extent::Outputs), count_of(Extent::Tiles));
    if (units == 0) break;
    const uint64_t then_units = form.record.then_units;
    blocks = {&launch.call,
              form.function,
              form.record.threads,
              units,
              form.record.shared_bytes,
              form.then,
              form.record.then_threads,
              then_units ? then_units : count_of(Extent::Tokens)};
  }
  if (launch.only_logits && count_of(Extent::Outputs) == 0) blocks.units = 0;
  return blocks;
}

izh_status launch_units(DeviceProgram* program, const Call& call, DeviceFunction* function,
                        uint64_t units, uint32_t threads, uint32_t shared_bytes, izh_error* error) {
  program->values[call.end] = units;
  // In range: the loader has limited units.
  return device_launch(program->device, function, static_cast<uint32_t>(units), threads,
                       shared_bytes, program->overlaps,
                       program->arguments.data() + call.first_argument, error);
}

izh_status launch_all(DeviceProgram* program, const int64_t* counts, izh_error* error) {
  for (const Launch& launch : program->launches) {
    const Blocks blocks = blocks_of(launch, counts);
    if (blocks.units == 0) continue;
    IZH_TRY(launch_units(program, *blocks.call, blocks.function, blocks.units, blocks.threads,
                         blocks.shared_bytes, error));
    if (!blocks.then) continue;
    IZH_TRY(launch_units(program, *blocks.call, blocks.then, blocks.then_units, blocks.then_threads,
                         0, error));
  }
  return IZH_OK;
}

izh_status launch_best(DeviceProgram* program, uint32_t rows, izh_error* error) {
  const Root& root = program->model->image.root;
  uint64_t logits = program->arena + root.plan.logits_offset, vocabulary = root.model.vocabulary;
  void* arguments[] = {&logits, &program->best, &vocabulary, &program->best_scratch};
  const DeviceKernel& kernel = program->best_kernel;
  return device_launch(program->device, kernel.function, rows * schema::kBestBlocks, kernel.threads,
                       kernel.shared_bytes, program->overlaps, arguments, error);
}

izh_status give(DeviceProgram* program, const Work& work, const int64_t* counts, izh_error* error) {
  const uint64_t bytes = program->input_bytes + sizeof(int64_t) * kExtents;
  IZH_TRY(device_send(program->device, program->inputs, program->host_inputs, bytes, error));
  IZH_TRY(launch_all(program, counts, error));
  return work.chooses ? launch_best(program, work.counts.outputs, error) : IZH_OK;
}

// A step whose counts are those of the step before is likely to come many times.
izh_status give_or_replay(DeviceProgram* program, const Work& work, const int64_t* counts,
                          izh_error* error) {
  const bool again = memcmp(&program->recorded, &work, sizeof(work)) == 0;
  if (!again) {
    device_forget(program->device, program->graph);
    program->graph = nullptr;
    program->recorded = work;
    return give(program, work, counts, error);
  }
  if (!program->graph) {
    IZH_TRY(device_record(program->device, error));
    const izh_status launched = give(program, work, counts, error);
    // Recording ends in any case; the first failure is the one to tell.
    izh_error second;
    const izh_status ended =
        device_recorded(program->device, &program->graph, launched == IZH_OK ? error : &second);
    if (launched != IZH_OK) return launched;
    if (ended != IZH_OK) return ended;
  }
  return device_replay(program->device, program->graph, error);
}

}  // namespace

izh_status device_program_create(const izh_model& model, const DeviceSizes& sizes,
                                 DeviceProgram** out, izh_error* error) {
  *out = nullptr;
  const DeviceImage* image = nullptr;
  IZH_TRY(device_image_get(model, &image, error));
  DeviceProgram* program = heap_create<DeviceProgram>();
  if (!program) return no_memory(error);
  program->model = &model;
  program->device = model.device;
  izh_status status = take_memory(program, sizes, image->scratch_bytes, error);
  if (status == IZH_OK) status = bind(program, *image, sizes, error);
  if (status == IZH_OK) status = device_wait(program->device, error);
  if (status != IZH_OK) {
    device_program_destroy(program);
    return status;
  }
  *out = program;
  return IZH_OK;
}

void device_program_destroy(DeviceProgram* program) {
  if (!program) return;
  Device* device = program->device;
  izh_error ignored;
  // Where this fails, so will the rest, and the process ends it all.
  (void)device_begin(device, &ignored);
  (void)device_wait(device, &ignored);
  device_forget(device, program->graph);
  for (const DeviceAddress pool : program->pools) device_free(device, pool);
  device_free(device, program->arena);
  device_free(device, program->inputs);
  device_free(device, program->best);
  device_free(device, program->best_scratch);
  device_free(device, program->row_scratch);
  device_host_free(device, program->host_inputs);
  heap_destroy(program);
}

void* device_program_inputs(DeviceProgram* program) { return program->host_inputs; }

izh_status device_program_run(DeviceProgram* program, const StepCounts& step, float* logits,
                              int32_t* best, izh_error* error) {
  Device* device = program->device;
  const int64_t counts[kExtents] = {1,          step.tokens, step.outputs,
                                    step.tiles, step.merges, step.sequences};
  char* host = static_cast<char*>(program->host_inputs);
  memcpy(host + program->input_bytes, counts + 1, sizeof(counts) - sizeof(counts[0]));
  const Work work = {step, !logits && step.outputs != 0};
  IZH_TRY(device_begin(device, error));
  IZH_TRY(give_or_replay(program, work, counts, error));
  if (step.outputs == 0) return device_wait(device, error);
  if (logits) {
    const Root& root = program->model->image.root;
    const uint64_t bytes = uint64_t{step.outputs} * root.model.vocabulary * sizeof(float);
    return device_download(device, logits, program->arena + root.plan.logits_offset, bytes, error);
  }
  return device_download(device, best, program->best, step.outputs * sizeof(int32_t), error);
}

}  // namespace izh
