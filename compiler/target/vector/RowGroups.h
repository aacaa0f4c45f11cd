// Rows in groups of one size that cover all of them: the last group may begin
// within the one before it.

#pragma once

#include "compiler/target/KernelBuilder.h"

namespace izhc {

struct RowGroups {
  using Value = mlir::Value;

  int64_t size;
  Value rows; // at least `size`

  Value count(KernelBuilder &k) const { return k.div(k.add(rows, size - 1), size); }
  Value firstRow(KernelBuilder &k, Value group) const {
    return k.min(k.mul(group, size), k.add(rows, -size));
  }
};

} // namespace izhc
