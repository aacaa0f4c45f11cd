// Attention of many rows on tensor cores: a block has up to 64 queries, heads of
// neighbouring rows that share a key head, 16 a warp, and reads keys and values once
// for all of them, while the group of keys before is computed with. Sums are those of
// AttentionCore.h, spans those of AttentionSums.h.

#pragma once

#include "targets/cuda/codegen/Block.h"

namespace izhc::cuda {

namespace attention_warps {

constexpr int64_t kThreads = 128, kQueries = 64;
// Blocks that a multiprocessor is to have registers for.
constexpr int64_t kTogether = 2;

// Blocks for each key head of a tile.
int64_t batches(pack::AttentionOp op);
// Of shared memory that the launch has to bring.
int64_t launchBytes(pack::AttentionOp op);

// For what AttentionCore takes. Unit: (tile number from the last * key heads + key head) *
// batches + batch.
llvm::LogicalResult emit(Block &block, pack::AttentionOp op);

} // namespace attention_warps

} // namespace izhc::cuda
