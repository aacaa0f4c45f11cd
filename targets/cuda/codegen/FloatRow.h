// `matmul` of float weights and a step's only row: a block has a tile, a lane a row and
// a span of it, whose weights lie in registers before the row is there.

#pragma once

#include "targets/cuda/codegen/PairProducts.h"

namespace izhc::cuda {

namespace float_row {

// units 0: there is no such form. It has a block for each unit.
OneRowShape shape(pack::MatmulOp op);

// Calls Block::prepare. With Block::recordType one unit more leaves a record of the row of
// activations, which the block has as floats.
llvm::LogicalResult emit(Block &block, pack::MatmulOp op);

} // namespace float_row

} // namespace izhc::cuda
