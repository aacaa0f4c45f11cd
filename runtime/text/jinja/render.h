// Chat templates: from a conversation to the prompt. The language is that of
// Jinja as published chat templates use it, run in a sandbox: no files, no
// attributes but those of data, limits on steps, memory, depth and output.

#pragma once

#include "runtime/base/array.h"
#include "runtime/include/izh/izh.h"
#include "runtime/text/jinja/machine.h"

namespace izh::jinja {

struct RenderInput {
  Text source;
  // An object of JSON: the variables. Where it does not say, "tools" is none
  // and "add_generation_prompt" true. "now", an ISO time, is what
  // strftime_now tells.
  Text context;
  // Variables for a context that has none of these names; data of nullptr: none.
  Text bos_token = {nullptr, 0};
  Text eos_token = {nullptr, 0};
};

// Writes the prompt to `out`.
[[nodiscard]] izh_status render(const RenderInput& input, const Limits& limits, Array<char>* out,
                                izh_error* error);

}  // namespace izh::jinja
