// Single weights of formats with grids, scalar: what the reference target and
// the embedding read.

#pragma once

#include "compiler/formats/PackedLayout.h"
#include "compiler/target/KernelBuilder.h"

namespace izhc {

class GridCode {
public:
  using Value = mlir::Value;

  GridCode(KernelBuilder &k, const PackedLayout &layout)
      : k(k), layout(layout), format(*layout.format), grid(*layout.format->grid) {}

  // Element `index` (i64) of a role, as i32, from the words of a unit; `lane`
  // is the row's number in the tile.
  Value element(FieldRole role, Value unit, Value lane, Value index);
  // The code of weight `weight` (i64) of the unit less the zero point, as i32.
  Value code(Value unit, Value lane, Value weight);

private:
  Value ternary(Value unit, Value lane, Value weight);

  KernelBuilder &k;
  const PackedLayout &layout;
  const FormatSpec &format;
  const Grid &grid;
};

} // namespace izhc
