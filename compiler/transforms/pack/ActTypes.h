// Which form of activations the products with a set of matrices read.

#pragma once

#include "dialects/pack/Pack.h"

namespace izhc {

// The activations that matrices of these formats (names of FormatSpecs that
// exist) can all read: rows of `width` values with the fields that any of them
// needs. `exact`, or formats that want different kinds: float32.
pack::ActType chooseActType(mlir::MLIRContext *context, int64_t width,
                            llvm::ArrayRef<llvm::StringRef> formats, bool exact);

// Of the same width and kind, with the fields of both.
pack::ActType mergeActTypes(pack::ActType a, pack::ActType b);

} // namespace izhc
