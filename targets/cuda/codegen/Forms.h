// Forms of kernels for many rows (runtime/schema/device_code.h): products on
// tensor cores, and attention of tiles.

#pragma once

#include "runtime/schema/device_code.h"
#include "targets/cuda/codegen/Block.h"
#include <functional>

namespace izhc::cuda {

struct Form {
  int64_t threads;
  int64_t together; // blocks of a multiprocessor that registers have to suffice for
  // As in a DeviceForm.
  int64_t groups, rowsEach, leastRows;
  izh::schema::FormRows rows;
  std::function<llvm::LogicalResult(Block &)> emit;
};
using Forms = llvm::SmallVector<Form, 2>;

// With ascending leastRows; none where the op's only form serves any number.
Forms formsOf(pack::MatmulOp op);
Forms formsOf(pack::MatmulHeadsOp op);
Forms formsOf(pack::AttentionOp op);

} // namespace izhc::cuda
