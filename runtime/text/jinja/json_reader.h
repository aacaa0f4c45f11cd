// JSON as values of templates.

#pragma once

#include "runtime/text/jinja/machine.h"

namespace izh::jinja {

// The value of `json`, which is UTF-8. Fails with a sentence that says where.
// The value may point into `json`.
Value read_json(Machine& machine, Text json);

}  // namespace izh::jinja
