// Biases of products that become one.

#pragma once

#include "dialects/pack/Pack.h"
#include "mlir/IR/PatternMatch.h"

namespace izhc {

// The biases of `products`, in order: none if no product has any, else zeros
// for those without.
llvm::SmallVector<mlir::Value> joinBiases(mlir::PatternRewriter &rewriter,
                                          llvm::ArrayRef<pack::MatmulOp> products);

} // namespace izhc
