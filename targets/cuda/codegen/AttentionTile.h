// Attention of many rows in float32, where AttentionCore doesn't take it: a block
// has up to 32 queries, heads of neighbouring rows that share a key head, and reads
// keys and values once for all of them. Adds in the order of the form for few rows (Attention.cpp).

#pragma once

#include "targets/cuda/codegen/Block.h"

namespace izhc::cuda {

class AttentionTile {
public:
  static constexpr int64_t kThreads = 128, kQueries = 32;

  // Blocks of a multiprocessor.
  static constexpr int64_t kTogether = 2;

  // Of a value: a thread has a sixteenth of them, of four queries, in registers.
  static constexpr int64_t kMostColumns = 256;

  static bool takes(pack::AttentionOp op);
  // Blocks for each key head of a tile.
  static int64_t batches(pack::AttentionOp op);

  // Unit: (tile number from the last * key heads + key head) * batches + batch.
  static llvm::LogicalResult emit(Block &block, pack::AttentionOp op);
};

} // namespace izhc::cuda
