// `attention` of a step's only row, with the `merge` of its spans: a block has
// one head and one span. What earlier steps left in the cache is loaded before
// the kernels ahead of this one have ended; the block of a head that ends last
// merges its spans. With Block::heads it also does what is left of these. Sums
// are those of AttentionSums.h.

#pragma once

#include "targets/cuda/codegen/Block.h"

namespace izhc::cuda {

namespace attention_row {

// Whether there is such a form: for caches of 16 bits that are read from the
// first key on, with heads of up to 128 values.
bool takes(pack::AttentionOp op);
// Whether it can leave a record of what it stores (Block::recordType).
bool canLeaveRecord(pack::AttentionOp op);
// For each tile, which is a span of the row, or all of it.
int64_t units(pack::AttentionOp op);
// Of Block::scratch, which the kernel leaves as it finds it: zeroes.
int64_t scratchBytes(pack::AttentionOp op);
// Blocks that a multiprocessor is to have room for.
constexpr int64_t kTogether = 2;

// Calls Block::prepare.
void emit(Block &block, pack::AttentionOp op);

} // namespace attention_row

} // namespace izhc::cuda
