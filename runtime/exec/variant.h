// Which of an artifact's variants runs here, and why the others do not.

#pragma once

#include <cstdint>

#include "runtime/exec/root.h"
#include "runtime/include/izh/izh.h"
#include "runtime/platform/device.h"

namespace izh {

// What the code will run on.
struct Machine {
  const char* arch;
  uint64_t features;
  const char* name;  // of a device; NULL: the processor
};

// Of this processor where `device` is NULL.
Machine machine_of(const Device* device);

// Chooses the variant of the highest rank that `machine` can run, or the one
// that `options` force, and holds it to the features that `options` require.
// `options` may be NULL. Where they allow it, and ask for nothing else, kNoVariant
// is chosen if there is none.
[[nodiscard]] izh_status variant_choose(const Root& root, const char* name, const Machine& machine,
                                        const izh_model_options* options, uint32_t* chosen,
                                        izh_error* error);

// In place of an index: no variant runs on the machine.
constexpr uint32_t kNoVariant = UINT32_MAX;

// Why variant `index` is not the chosen one, cut to `capacity`; "" if it is.
void variant_reason(const Root& root, const Machine& machine, uint32_t index, uint32_t chosen,
                    char* out, size_t capacity);

}  // namespace izh
