// Rows chosen, reordered, transposed and stacked from other tensors.

#pragma once

#include "compiler/import/ModelSource.h"

namespace izhc {

// Matrix m of ours is matrix m % parts' of parts[m / ...]: parts are stacked in
// order, each with all its matrices.
struct StackedRows {
  std::vector<const TensorInfo *> parts;
  int64_t matrices = 1; // of each part
  int64_t rows = 0;     // of a stored matrix, as it is stored
  int64_t cols = 0;
  bool transpose = false;
  // Indices of rows and columns after transposing; empty: all in order.
  std::vector<int64_t> rowOrder, colOrder;

  int64_t ourRows() const {
    return rowOrder.empty() ? (transpose ? cols : rows) : int64_t(rowOrder.size());
  }
  int64_t ourCols() const {
    return colOrder.empty() ? (transpose ? rows : cols) : int64_t(colOrder.size());
  }
};

// A reader of them. The parts must outlive it. Transposing and choosing columns
// need formats of one weight a block.
std::shared_ptr<const RowReader>
readStacked(StackedRows stack, std::function<void(const uint8_t *, uint64_t)> release);

} // namespace izhc
