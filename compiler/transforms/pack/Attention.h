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

// How far back the cache's readers look, if all of them look through a window;
// 0 if one doesn't.
int64_t windowOf(lm::StateOp cache);
// The encoded cache, and the places of the step's tokens in it.
struct CacheValues {
  mlir::Value cache, slots;
};
CacheValues makeCache(mlir::OpBuilder &builder, mlir::Location loc, lm::StateOp state,
                      int64_t bits);

// `windowed`: the places in caches with a window.
mlir::Value stepInput(mlir::OpBuilder &builder, mlir::Location loc, pack::StepInput kind,
                      bool windowed = false);

// Puts pack.attention of `queries` and `cache` and the merge of its spans in
// the place of `op`. `windowed`: all readers of the cache have windows. A cache
// that is turned has its queries turned here, unless `turned` says that they are.
void replaceAttention(mlir::RewriterBase &rewriter, lm::AttentionOp op, mlir::Value queries,
                      bool turned, mlir::Value cache, bool windowed, bool exact);

} // namespace izhc
