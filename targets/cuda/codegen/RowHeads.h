// What a block of attention in a step of one row does of the `matmul_heads` before it
// (Block::heads), whose products are as they are multiplied: it finishes its queries, and
// the newest key and value of its key head.

#pragma once

#include "targets/cuda/codegen/HeadFinish.h"

namespace izhc::cuda {

class RowHeads {
public:
  using Value = mlir::Value;

  // `queries`: how many the block has at a time; raw: as many heads of floats in shared
  // memory, of which these take the place.
  RowHeads(Block &block, pack::MatmulHeadsOp op, int64_t queries, Value raw);

  // Loads what no kernel writes; before Block::prepare.
  void fetch();

  // A warp for each query: head headOf(number), after which use(number, values) is called,
  // by the warp.
  void finishQueries(llvm::function_ref<Value(Value number)> headOf,
                     llvm::function_ref<void(Value number, Value values)> use);
  // Of key head `kvHead`, where `wanted` holds; the block sees them after a barrier.
  void finishNew(Value kvHead, Value wanted);
  // The newest key's values 2i and 2i + 1, as pages have them.
  Value keyWord(Value i);
  // Column `i` of the newest value, as pages have it: 16 bits of an i32.
  Value valueHalf(Value i);
  // To the cache, where later steps find them.
  void storeNew();

private:
  // The warp that has the key (1) or value (2) that is new: one that has few queries.
  Value isWarp(int64_t matrix);
  void loadHead(HeadFinish &finisher, size_t matrix, Value number, Value from, Value into);

  Block &block;
  pack::MatmulHeadsOp op;
  KernelBuilder &k;
  Cache cache;
  int64_t dim, queries;
  Value raw, newKey, newValue, newWords; // in shared memory
  Value slot, kvHead, hasNew;
  HeadFinish queryFinish, keyFinish, valueFinish;
};

} // namespace izhc::cuda
