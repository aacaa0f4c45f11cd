// Divides a number of bits between the matrices of a model, so that the errors
// measured on samples of their rows become small.

#pragma once

#include "compiler/import/ModelSource.h"

namespace izhc {

struct BudgetMatrix {
  const TensorInfo *stored;
  // As EncodingReader takes it.
  llvm::ArrayRef<float> importance;
  // What it may become, by ascending bits; at least one.
  llvm::SmallVector<const FormatSpec *> formats;
};

// The format of each matrix. Together they take at most `bits`, or as little as
// they can. Errors are relative to a matrix's own weights, and all weights
// count alike.
std::vector<const FormatSpec *> spendBits(llvm::ArrayRef<BudgetMatrix> matrices, double bits);

} // namespace izhc
