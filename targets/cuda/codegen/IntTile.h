// A tile whose weights are decoded to bytes in shared memory, one step of columns
// while the one before is multiplied.

#pragma once

#include "targets/cuda/codegen/ProductTile.h"

namespace izhc::cuda {

class IntTile final : public ProductTile {
public:
  static int64_t sharedBytes(const TileShape &shape);
  static bool takes(pack::WeightType weights, pack::ActType act);

  IntTile(Block &block, const TileShape &shape, Value shared)
      : block(block), k(block.k), shape(shape), shared(shared) {}

  Values compute(const Weights &weights, At tileAt, At recordAt, pack::ActType act) override;
  void forSums(const Values &sums, bool paired,
               llvm::function_ref<void(llvm::ArrayRef<Sum> some)> body) override;

private:
  struct Stage;

  int64_t down() const { return shape.rows / shape.warpsDown / 16; }       // of a warp, 16 rows
  int64_t across() const { return shape.records / shape.warpsAcross / 8; } // 8 records
  Value codesAt(Value codes, Value row, Value piece) const;
  Value placeOfRow(Value row) const;
  Value placeOfRecord(Value record) const;
  Values ofRows(Value table, int64_t run) const;
  Values ofRecords(Value table, int64_t run) const;
  Stage stage(Value number) const;
  void fillWeights(const Weights &weights, llvm::function_ref<Value(Value)> tileAt, Value step,
                   const Stage &to);
  void fillRecords(const Weights &weights, llvm::function_ref<Value(Value)> recordAt,
                   pack::ActType act, Value step, const Stage &to);
  void copyPiece(const Weights &weights, llvm::function_ref<Value(Value)> recordAt,
                 pack::ActType act, Value step, Value item, Value isThere, const Stage &to);
  void multiply(const Weights &weights, const Stage &from, int64_t part, Values &sums);
  Value firstRow() const;
  Value firstRecord() const;

  Block &block;
  KernelBuilder &k;
  TileShape shape;
  Value shared;
};

} // namespace izhc::cuda
