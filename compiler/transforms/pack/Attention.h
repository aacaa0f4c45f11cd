// What FuseHeads and LowerAttention make of states and attention.

#pragma once

#include "dialects/lm/Lm.h"
#include "dialects/pack/Pack.h"
#include "mlir/IR/PatternMatch.h"

namespace izhc {

// Whether caches of `bits` a value can hold heads of these sizes.
bool fits(lm::KvCacheType type, int64_t bits);
// The encoded form of a cache; it has to fit.
pack::KvType cacheType(lm::KvCacheType type, int64_t bits);

mlir::Value stepInput(mlir::OpBuilder &builder, mlir::Location loc, pack::StepInput kind);

// Puts pack.attention of `queries` and `cache` and the merge of its spans in
// the place of `op`.
void replaceAttention(mlir::RewriterBase &rewriter, lm::AttentionOp op, mlir::Value queries,
                      mlir::Value cache, bool exact);

} // namespace izhc
