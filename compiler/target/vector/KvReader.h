// Panels of a cache's page in the form that products read.

#pragma once

#include "compiler/target/vector/PairForm.h"

namespace izhc {

class KvReader {
public:
  KvReader(KernelBuilder &k, pack::KvType type, PairForm form)
      : k(k), layout(type), blocks(type.isTurned()), form(form) {}

  // All rows of the key panel at `from`.
  void keyPanel(mlir::Value from, mlir::Value to);
  // Panels of values are made one by one, or by twos where blocks span two.
  int64_t panelsAtOnce() const { return blocks ? 2 : 1; }
  // Rows begin..end of the panels at `from` (a panel's or a block's start); the
  // rows of the second panel follow `panelStride` bytes behind the first.
  // `to` is where row 0 of this page would be.
  void valuePanels(mlir::Value from, mlir::Value begin, mlir::Value end, mlir::Value to,
                   int64_t panelStride);

private:
  using Value = mlir::Value;
  using Values = KernelBuilder::Values;

  void halfRows(Value from, Value begin, Value end, Value to);
  // `floats`: the row as vectors of float32.
  void storeRow(llvm::ArrayRef<Value> floats, Value to);
  Values keyScales(Value from);
  void keyBlock(Value from, Value to);
  // Codes of one row, or of the two that share bytes.
  void codeRows(Value from, llvm::ArrayRef<Value> scales, Value low, Value high);

  KernelBuilder &k;
  pack::KvLayout layout;
  bool blocks;
  PairForm form;
};

} // namespace izhc
