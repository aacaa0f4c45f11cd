// What products of one row and of many have in common around the sums.

#pragma once

#include "targets/cuda/codegen/Block.h"

namespace izhc::cuda {

// The record of row `row` of `rows` or, where that is beyond them, of the last.
mlir::Value actRecord(Block &block, mlir::Value act, mlir::Value row, mlir::Value rows);

// What goes to `place` for the sum `y`, and `up` where the epilogue is gated.
// `before`: what is there, if that was loaded already.
mlir::Value matmulResult(KernelBuilder &k, pack::MatmulOp op, mlir::Value y, mlir::Value up,
                         mlir::Value place, mlir::Value before = {});

// What an expert's gate and up make.
mlir::Value gatedResult(KernelBuilder &k, pack::ExpertGateOp op, mlir::Value gate, mlir::Value up);

} // namespace izhc::cuda
