// What contexts on a device share: the weights there, and the kernels.

#pragma once

#include "runtime/base/array.h"
#include "runtime/exec/model.h"
#include "runtime/platform/device.h"
#include "runtime/schema/device_code.h"

namespace izh {

struct DeviceKernel {
  DeviceFunction* function;
  uint32_t threads;  // of a block
  uint32_t shared_bytes;
  uint32_t form_count;
  struct Form {
    schema::DeviceForm record;
    DeviceFunction* function;
    DeviceFunction* then;
  } forms[schema::kMaxForms];
};

// What a dispatch is where a count of the step is 1 (runtime/schema/device_code.h).
struct OneRow {
  Extent rows;  // Fixed: it has no other form
  bool skipped;
  DeviceKernel kernel;
  uint32_t prologue;  // dispatch number plus 1; 0: none
  uint32_t blocks;    // that are launched, for each that `extent` counts
  Extent extent;
};

struct DeviceImage {
  DeviceAddress weights = 0;
  DeviceAddress constants = 0;
  DeviceCode* code = nullptr;
  Array<DeviceKernel> kernels;  // as in the plan
  Array<OneRow> one_rows;       // of each dispatch, or none at all
  DeviceKernel best = {};       // of rows of logits
  uint64_t scratch_bytes = 0;   // of kernels for one row
  bool overlaps = false;        // launches may begin before those before them end
};

// Checks the records of the chosen variant's code, which is a device's: after
// this, names and text end within it and counts agree with the plan.
[[nodiscard]] izh_status device_code_check(const izh_model& model, izh_error* error);

// Bytes that each context needs beside what the plan says, of checked code.
[[nodiscard]] uint64_t device_row_scratch_bytes(const izh_model& model);

// The model's image, made if this is the first call for it. Threads may call it
// at the same time.
[[nodiscard]] izh_status device_image_get(const izh_model& model, const DeviceImage** out,
                                          izh_error* error);
// NULL is allowed.
void device_image_destroy(Device* device, DeviceImage* image);

}  // namespace izh
