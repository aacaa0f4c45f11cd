// The plan made ready to run on a device: memory there, one launch for each
// dispatch, and a recording of the launches where the same step comes again.

#pragma once

#include "runtime/exec/device_image.h"
#include "runtime/exec/program.h"

namespace izh {

struct DeviceProgram;

// Sizes of a context's memory on the device.
struct DeviceSizes {
  uint64_t arena;
  const uint64_t* pools;  // of each state
  uint64_t inputs;        // all arrays together, the first at 0
  const uint64_t* input_offsets;
};

// Takes the memory and binds the plan of `model`, whose device runs it.
[[nodiscard]] izh_status device_program_create(const izh_model& model, const DeviceSizes& sizes,
                                               DeviceProgram** out, izh_error* error);
void device_program_destroy(DeviceProgram* program);

// Where the input arrays of the next step are to be filled in.
void* device_program_inputs(DeviceProgram* program);

// Runs one step and copies its rows of logits to `logits`, or, where that is NULL,
// the number of the largest of each row to `best` (as izh_context_run_best says).
[[nodiscard]] izh_status device_program_run(DeviceProgram* program, const StepCounts& counts,
                                            float* logits, int32_t* best, izh_error* error);

}  // namespace izh
