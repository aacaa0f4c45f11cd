// Forms of kernels for many rows (runtime/schema/device_code.h): products on
// tensor cores, also of experts, and attention of tiles.

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
  // Of a kernel that follows; null: there is none.
  std::function<llvm::LogicalResult(Block &)> then = {};
  int64_t thenThreads = 0;
  int64_t thenUnits = 0;    // 0: one for each row of the step
  int64_t scratchOfRow = 0; // bytes
};
using Forms = llvm::SmallVector<Form, 2>;

// With ascending leastRows; none where the op's only form serves any number.
Forms formsOf(pack::MatmulOp op);
Forms formsOf(pack::MatmulHeadsOp op);
Forms formsOf(pack::AttentionOp op);
Forms formsOf(pack::ExpertGateOp op);
Forms formsOf(pack::ExpertSumOp op);
Forms formsOf(pack::RouteOp op);
Forms formsOf(pack::HeadMatmulOp op);

// Of a product with code for a few rows at a time only: so that these have blocks
// of their own.
Form formOfFewRows(pack::MatmulOp op, izh::schema::FormRows rows);

} // namespace izhc::cuda
