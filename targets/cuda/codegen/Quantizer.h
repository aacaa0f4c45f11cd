// The work of one `quantize`, for kernels of its own and for those of its reader.

#pragma once

#include "targets/cuda/codegen/Records.h"

namespace izhc::cuda {

class Quantizer {
public:
  // The op's operands are found by `block`; records are made as `type`. Begins to
  // load what no kernel writes.
  Quantizer(Block &block, pack::QuantizeOp op, pack::ActType type);

  // Makes record number `number`, at `record`. All threads of the block call it,
  // after Block::awaitInputs; without a barrier at the end.
  void write(mlir::Value number, mlir::Value record);

private:
  Block &block;
  pack::QuantizeOp op;
  pack::ActType type;
  RecordWriter writer;
};

} // namespace izhc::cuda
