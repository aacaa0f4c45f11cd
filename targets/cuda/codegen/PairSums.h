// Terms of pairs of tiles and eight records, and what records give for them; the
// order of additions is that of Spans.h.

#pragma once

#include "targets/cuda/codegen/PairDot.h"

namespace izhc::cuda {

// What a record says of a chunk's runs of 32 columns: a and s of Spans.h, a times
// `unit`; s only where there are minima.
struct ChunkScales {
  std::array<mlir::Value, 2> steps, sums;
};
ChunkScales loadScales(KernelBuilder &k, pack::ActType act, bool hasMinima, double unit,
                       mlir::Value record, mlir::Value chunk);

// The lane's words of a record's 32 columns, number `part` in their chunk, whose bytes
// are at at(byte).
std::array<mlir::Value, 2> loadPieces(KernelBuilder &k, const PairDot &dot, int64_t part,
                                      llvm::function_ref<mlir::Value(mlir::Value byte)> at);

// A run of some pairs of tiles.
class PairSums {
public:
  using Value = mlir::Value;
  using Two = std::array<Value, 2>;

  PairSums(KernelBuilder &k, llvm::SmallVector<PairDot::Bytes, 2> weights);

  // Adds the terms with eight records, number `j` of `across` times eight, to sums
  // [pair][row][j][column]. `all`: null without minima.
  void add(Two codes, Two steps, Two all, int64_t j, int64_t across,
           KernelBuilder::Values &sums) const;

private:
  KernelBuilder &k;
  llvm::SmallVector<PairDot::Bytes, 2> weights;
  llvm::SmallVector<KernelBuilder::Values, 2> less;
};

} // namespace izhc::cuda
