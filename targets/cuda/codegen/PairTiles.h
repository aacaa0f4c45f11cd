// Pairs of rows and experts in tiles of one expert each, so that a tile's records
// meet the same weights.

#pragma once

#include "dialects/pack/RoutesLayout.h"
#include "targets/cuda/codegen/Block.h"

namespace izhc::cuda {

class PairTiles {
public:
  using Value = mlir::Value;

  struct Tile {
    Value expert;
    Value first, end; // pairs; `end` is that of all the expert's
  };

  // Tiles of up to `records` pairs, of the table at `table`.
  PairTiles(Block &block, Value table, pack::RoutesType type, int64_t records)
      : block(block), k(block.k), table(table), layout(type), records(records),
        found(block.shared(16)) {}

  // Calls body(tile) for the tiles number first, first + step, ... that have pairs.
  // All threads call it together; with barriers before and after.
  void forEach(Value first, Value step, llvm::function_ref<void(const Tile &)> body);

private:
  Value entry(Value number) const;
  Value field(Value address, int64_t offset) const;

  Block &block;
  KernelBuilder &k;
  Value table;
  pack::RoutesLayout layout;
  int64_t records;
  Value found; // shared
};

} // namespace izhc::cuda
