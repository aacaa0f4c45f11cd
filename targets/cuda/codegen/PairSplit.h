// A tile for a few records: warps divide the columns of a row by spans, so that
// small matrices too keep a GPU busy with loads. Each warp reads weights as PairDot
// does and records as they lie; the sums of spans meet in shared memory.

#pragma once

#include "targets/cuda/codegen/PairDot.h"
#include "targets/cuda/codegen/ProductTile.h"

namespace izhc::cuda {

class PairSplit final : public ProductTile {
public:
  static int64_t sharedBytes(const TileShape &shape);

  PairSplit(Block &block, const TileShape &shape, Value shared, pack::WeightType weights,
            pack::ActType act);

  Values compute(const Weights &weights, At tileAt, At recordAt, pack::ActType act) override;
  void forSums(const Values &sums, bool paired,
               llvm::function_ref<void(llvm::ArrayRef<Sum>)> body) override;

private:
  int64_t across() const { return shape.records / 8; }
  // Rows, of each of the two tiles of a pair, and records of a thread.
  int64_t items() const { return shape.rows / 32 * shape.records * 16 / shape.threads(); }
  struct Item {
    Value row, record; // row: of the first tile
  };
  Item item(int64_t number) const;
  Value slotAt(Value slot, Value record, Value row) const;
  Values sumSpan(Value tile, Value span, const Spans &spans, At recordAt) const;
  // What a chunk adds: the lane's eight records are columns of `acts`.
  void addChunk(llvm::ArrayRef<Value> words, Value chunk, llvm::ArrayRef<Value> mine,
                llvm::ArrayRef<Value> others, Values &sums) const;
  void keep(const Values &sums, Value slot, Value pair) const;
  Values addSlots(const Values &totals, Value firstSpan, int64_t spans) const;

  Block &block;
  KernelBuilder &k;
  TileShape shape;
  Value shared;
  PairDot dot;
  pack::ActType act;
  bool hasMinima;
};

} // namespace izhc::cuda
