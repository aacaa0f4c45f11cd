// Attention of few rows on tensor cores: a block has a span of keys and the heads that
// share a key head, up to 16 queries at a time; each warp has 32 of the keys, then some
// columns of all keys' values. Sums are those of AttentionCore.h, spans those of
// AttentionSums.h.
//
// Of a step's only row it is `attention` with the `merge` of its spans: what earlier
// steps left in the cache is loaded before the kernels ahead of this one have ended; of
// a key head, the block that ends last merges the spans. With Block::heads it also does
// what is left of these.

#pragma once

#include "targets/cuda/codegen/Block.h"

namespace izhc::cuda {

namespace attention_row {

// Whether there is the form for a step's only row: where AttentionCore takes the op, and
// keys are read from the first on.
bool takes(pack::AttentionOp op);
// For each tile, which is a span of the row, or all of it.
int64_t units(pack::AttentionOp op);
// Of Block::scratch, which the kernel leaves as it finds it: zeroes.
int64_t scratchBytes(pack::AttentionOp op);
// Blocks that a multiprocessor is to have room for.
constexpr int64_t kTogether = 1;

// For what AttentionCore takes; with Block::oneRow, for what `takes` does. Calls
// Block::prepare. Unit: tile number * key heads + key head.
void emit(Block &block, pack::AttentionOp op);

} // namespace attention_row

} // namespace izhc::cuda
