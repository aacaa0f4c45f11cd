// Which rows of a step a value has.

#pragma once

#include "dialects/pack/Pack.h"

namespace izhc {

// Output rows come from a selection; everything else has one row a token.
// `value` is made by `lm` or `pack` ops in tensor form.
pack::RowSet rowSetOf(mlir::Value value);

} // namespace izhc
