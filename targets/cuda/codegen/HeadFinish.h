// What a warp does with a head of `matmul_heads` whose products are there: bias,
// norm, rotation, and the place where attention reads it.

#pragma once

#include "targets/cuda/codegen/Cache.h"

namespace izhc::cuda {

class HeadFinish {
public:
  using Value = mlir::Value;

  HeadFinish(Block &block, pack::MatmulHeadsOp op);

  // Head `number` of matrix `matrix` for `token`; `values`: its products in
  // shared memory, seen by all lanes, which are changed.
  void finish(size_t matrix, Value number, Value token, Value values);

private:
  void normalize(Value values, Value weight);
  void rotate(Value values, Value token);
  void storeQuery(Value values, Value token, Value number);

  Block &block;
  pack::MatmulHeadsOp op;
  KernelBuilder &k;
  int64_t dim;
  Cache cache;
};

} // namespace izhc::cuda
