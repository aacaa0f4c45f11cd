// Forms of dispatches for steps of one row of activations: products that make
// the record that they read themselves, so that no kernel of its own is needed
// for it, and no other kernel has to be waited for.

#pragma once

#include "dialects/pack/Pack.h"
#include "dialects/plan/Plan.h"
#include "mlir/IR/BuiltinOps.h"
#include <optional>
#include <vector>

namespace izhc::cuda {

// What takes the place of a dispatch where its row set has one row.
struct OneRowForm {
  // Nothing does: its readers do its work.
  bool skipped = false;
  // A product is made for one row, after the work of dispatch number `prologue`
  // (-1: none).
  bool isProduct = false;
  int64_t prologue = -1;
  pack::RowSet rows = pack::RowSet::Tokens;
  int64_t units = 0; // of a product
  // Of those blocks that take units in turn, so many of a multiprocessor at a time;
  // 0: there is a block for each unit.
  int64_t atOnce = 0;

  bool isOther() const { return skipped || isProduct; }
};

// The kernel's only op.
mlir::Operation *opOf(plan::KernelOp kernel);

// A form for each plan.dispatch of `module`, in their order.
std::vector<OneRowForm> chooseOneRowForms(mlir::ModuleOp module);

} // namespace izhc::cuda
