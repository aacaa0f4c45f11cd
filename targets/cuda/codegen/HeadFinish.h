// What a warp does with a head of `matmul_heads` whose products are there: bias,
// norm, rotation, and the place where attention reads it.

#pragma once

#include "targets/cuda/codegen/Cache.h"

namespace izhc::cuda {

class HeadFinish {
public:
  using Value = mlir::Value;

  HeadFinish(Block &block, pack::MatmulHeadsOp op);

  // For steps of one row: loads what finishing needs of the weights of `matrix`,
  // and, once earlier kernels have ended, of the row.
  void fetchWeights(size_t matrix);
  void loadRow(size_t matrix);
  // Head `number` of matrix `matrix` for `token`; `values`: its products in
  // shared memory, seen by all lanes, which are changed.
  void finish(size_t matrix, Value number, Value token, Value values);
  // The same, but leaves what it makes in `values`, seen by all lanes.
  void transform(size_t matrix, Value number, Value token, Value values);

private:
  void normalize(Value values, Value weight);
  void rotate(Value values, Value token);
  void storeQuery(Value values, Value token, Value number);

  mlir::Value normOf(size_t matrix) {
    return matrix == 0 ? op.getQNorm() : matrix == 1 ? op.getKNorm() : Value();
  }

  // Of the lane's values, where they were loaded before.
  KernelBuilder::Values norms, cosines, sines;
  Value slot;
  Block &block;
  pack::MatmulHeadsOp op;
  KernelBuilder &k;
  int64_t dim;
  Cache cache;
};

} // namespace izhc::cuda
