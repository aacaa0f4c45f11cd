// Forms of kernels for many rows (runtime/schema/device_code.h): the products on
// tensor cores.

#pragma once

#include "targets/cuda/codegen/Block.h"
#include <functional>

namespace izhc::cuda {

struct Form {
  int64_t threads;
  int64_t groups, rowsEach; // units: groups for each rowsEach rows
  int64_t leastRows;
  bool outputs; // the rows are those with outputs
  std::function<llvm::LogicalResult(Block &)> emit;
};
using Forms = llvm::SmallVector<Form, 2>;

// With ascending leastRows; none where the op's only form serves any number.
Forms formsOf(pack::MatmulOp op);
Forms formsOf(pack::MatmulHeadsOp op);

} // namespace izhc::cuda
