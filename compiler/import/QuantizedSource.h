// A model whose matrices are encoded anew: what a recipe and the user's own
// choices make of another ModelSource. Rows are encoded when they are read.

#pragma once

#include "compiler/import/ModelSource.h"

namespace izhc {

struct QuantizeOptions {
  std::string recipe;                   // empty: weights stay as they are
  std::vector<std::string> tensorTypes; // PATTERN=TYPE, the last that matches counts
  std::string importance;               // a file; empty: none
  // Instead of a recipe: bits a weight, over all tensors; 0: not asked for.
  double targetBits = 0;

  bool empty() const { return recipe.empty() && tensorTypes.empty() && targetBits == 0; }
};

struct QuantizedModel {
  std::unique_ptr<ModelSource> source;
  // Matrices that are encoded anew, from and to codes of fewer than 8 bits: the
  // errors of both add up.
  unsigned encodedTwice = 0;
};

// Fails with a sentence if the options name what does not exist, or change
// nothing.
llvm::Expected<QuantizedModel> quantizeSource(std::unique_ptr<ModelSource> model,
                                              const QuantizeOptions &options);

} // namespace izhc
