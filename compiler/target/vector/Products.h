// What pack.matmul and pack.matmul_heads share.

#pragma once

#include "compiler/target/vector/TileProduct.h"

namespace izhc {

// One matrix of a product, at its run-time addresses.
struct Segment {
  const FormatSpec *format;
  mlir::Value weights, bias; // bias may be null
  int64_t rows, cols;

  int64_t tiles() const { return (rows + PackedLayout::kTileRows - 1) / PackedLayout::kTileRows; }
};

// Fails with a diagnostic on `op` if there is no vector code for products of
// the weight's format with such activations.
llvm::FailureOr<Segment> segmentOf(KernelFrame &frame, mlir::Operation *op, pack::ActType act,
                                   mlir::Value weight, mlir::Value bias);

// How many rows of activations share a pass, largest first. Expanding encoded
// weights to floats takes much code for each, so there the groups are small.
llvm::ArrayRef<int64_t> rowTiles(const KernelFrame &frame, pack::ActType act,
                                 llvm::ArrayRef<Segment> segments);

// The share of the frame's units that lies in [firstUnit, firstUnit + units),
// counted from firstUnit; may be empty (begin == end).
void forSegmentUnits(KernelFrame &frame, int64_t firstUnit, int64_t units,
                     llvm::function_ref<void(mlir::Value begin, mlir::Value end)> body);

} // namespace izhc
