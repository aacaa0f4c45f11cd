// A loaded artifact: the C API's izh_model, as exec and text see it.

#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/base/array.h"
#include "runtime/base/span.h"
#include "runtime/exec/image.h"
#include "runtime/exec/variant.h"
#include "runtime/include/izh/izh.h"
#include "runtime/platform/device.h"
#include "runtime/platform/file.h"
#include "runtime/schema/step.h"

namespace izh {

constexpr size_t kReasonBytes = 256;

struct DeviceImage;

// Opens the artifact of `size` bytes at `data` (64-byte aligned, and outliving
// the model) as izh_model_open does. `name` stands for the path in sentences.
// With `run` false its code is verified but not made runnable: for fuzzers,
// whose contexts must not be created.
[[nodiscard]] izh_status model_open_memory(const uint8_t* data, uint64_t size, const char* name,
                                           const izh_model_options* options, bool run,
                                           izh_model** out, izh_error* error);

}  // namespace izh

// Constant after opening, but for the slot of the text layer.
struct izh_model {
  izh::MappedFile file;
  izh::Image image;
  izh::MappedCode code;      // of the chosen variant
  uint32_t variant = 0;      // index of the chosen one, or kNoVariant
  bool runs = false;         // contexts can be created
  izh::Array<char> path;     // for sentences
  izh::Array<char> reasons;  // kReasonBytes a variant, zero-terminated

  // The tokenizer section; empty if the model has none. Its hash is checked,
  // its content is the text layer's to verify.
  izh::Span<const uint8_t> tokenizer;

  // The most tokens that a step computes.
  uint32_t step_tokens() const {
    const uint32_t most = image.root.plan.max_tokens;
    return device ? most : izh::schema::processor_step_tokens(most);
  }

  // Where its contexts run; NULL: on the processor.
  izh::Device* device = nullptr;
  // What contexts on a device share, made by the first of them (device_image.h).
  mutable std::atomic<izh::DeviceImage*> device_image{nullptr};

  // The text layer's own object, made at the first use: whoever wins the
  // exchange from NULL keeps it. `text_destroy` (set before the exchange) ends
  // it with the model.
  mutable std::atomic<void*> text{nullptr};
  mutable std::atomic<void (*)(void*)> text_destroy{nullptr};
};
