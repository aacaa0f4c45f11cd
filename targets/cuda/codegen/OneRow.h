// Forms of dispatches for steps of one row of activations: products that make
// the record that they read themselves, products of experts that make the choice too,
// and attention that merges its spans, so that no kernel of its own is needed for that,
// and no other has to be waited for.

#pragma once

#include "dialects/pack/Pack.h"
#include "dialects/plan/Plan.h"
#include "mlir/IR/BuiltinOps.h"
#include <optional>
#include <vector>

namespace izhc::cuda {

// What takes the place of a dispatch where its row set has one row.
struct OneRowForm {
  // Nothing does: others do its work.
  bool skipped = false;
  // It has a kernel for one row, which does the work of dispatch number `prologue`
  // (-1: none) before its own.
  bool hasKernel = false;
  int64_t prologue = -1;
  pack::RowSet rows = pack::RowSet::Tokens;
  int64_t units = 0; // of that kernel, for each that `extent` counts
  plan::Extent extent = plan::Extent::Fixed;
  // Of those blocks that take units in turn, so many of a multiprocessor at a time;
  // 0: there is a block for each unit.
  int64_t atOnce = 0;
  int64_t scratchBytes = 0;
  int64_t threads = 0; // of a block
  // Blocks that a multiprocessor is to have room for; 0: as many as there are.
  int64_t together = 0;
  // It also leaves the record that dispatch number `leaves` (-1: none) makes of what it
  // stores, or ratings of experts of their row, `recordOffset` from what it stores.
  int64_t leaves = -1;
  int64_t recordOffset = 0;
  // It reads such a record: experts' gate one for all pairs.
  bool readsLeft = false;
  // Of experts' sum: it makes the record of a pair as dispatch number `makes` (-1: none)
  // does, whose input is `inputOffset` from where it would leave all.
  int64_t makes = -1;
  int64_t inputOffset = 0;
  // Of experts' gate: kernels behind it begin when those before it have ended; and of the
  // sum that follows such a gate, with a choice: it makes that before the gate has ended.
  bool launchesLate = false;
  bool choosesEarly = false;
  // Of matmul_heads: it only multiplies, and its reader does the rest.
  bool isRaw = false;

  bool isOther() const { return skipped || hasKernel; }
};

// The kernel's only op.
mlir::Operation *opOf(plan::KernelOp kernel);

// A form for each plan.dispatch of `module`, in their order. `streams`: as of
// oneRowShape.
std::vector<OneRowForm> chooseOneRowForms(mlir::ModuleOp module, bool streams);

} // namespace izhc::cuda
