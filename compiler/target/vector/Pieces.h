// Cutting a row of any width into vectors: whole ones in a loop, then one
// narrower vector for each power of two of the rest.

#pragma once

#include "compiler/target/KernelBuilder.h"

namespace izhc {

// Widths, largest first, of the vectors that cover `rest` < `lanes` values; a
// width of 0 stands for one scalar (as in KernelBuilder::vec).
inline llvm::SmallVector<int64_t> tailPieces(int64_t rest, int64_t lanes) {
  llvm::SmallVector<int64_t> pieces;
  for (int64_t n = lanes / 2; n >= 1; n /= 2)
    if (rest & n)
      pieces.push_back(n == 1 ? 0 : n);
  return pieces;
}

// Values in a piece of that width.
inline int64_t pieceValues(int64_t piece) { return piece ? piece : 1; }

// Calls body(byte offset of float32, piece) for the pieces of `width` values,
// in ascending order; the body of whole vectors is emitted once, in a loop.
inline void forEachPiece(KernelBuilder &k, int64_t width, int64_t lanes,
                         llvm::function_ref<void(mlir::Value, int64_t)> body) {
  int64_t whole = width / lanes * lanes;
  if (whole)
    k.loop(k.constI64(0), k.constI64(4 * whole), 4 * lanes,
           [&](mlir::Value offset) { body(offset, lanes); });
  int64_t done = whole;
  for (int64_t piece : tailPieces(width - whole, lanes)) {
    body(k.constI64(4 * done), piece);
    done += pieceValues(piece);
  }
}

} // namespace izhc
