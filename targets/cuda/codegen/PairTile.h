// A tile whose weights go from memory to the tensor cores' registers, as PairDot
// reads them: only records come through shared memory, some chunks of columns ahead.
// A warp has pairs of 16 rows.

#pragma once

#include "targets/cuda/codegen/PairDot.h"
#include "targets/cuda/codegen/ProductTile.h"

namespace izhc::cuda {

class PairTile final : public ProductTile {
public:
  static bool takes(pack::WeightType weights, pack::ActType act);
  static int64_t sharedBytes(const TileShape &shape, pack::WeightType weights);

  PairTile(Block &block, const TileShape &shape, Value shared, pack::WeightType weights,
           pack::ActType act);

  Values compute(const Weights &weights, At tileAt, At recordAt, pack::ActType act) override;
  void forSums(const Values &sums, bool paired,
               llvm::function_ref<void(llvm::ArrayRef<Sum>)> body) override;

private:
  // Addresses in shared memory.
  struct Stage {
    Value codes;       // of a record after the other
    Value steps, sums; // a and s of Spans.h: of each record those of both 32 columns
  };
  // Steps and sums on their way to a stage.
  struct Fresh {
    Value at, isThere; // bytes from the tables' first; whether it is for a record (null: yes)
    Value step, sum;
  };

  int64_t pairs() const { return shape.rows / shape.warpsDown / 32; }
  int64_t across() const { return shape.records / shape.warpsAcross / 8; } // 8 records
  int64_t sumCount() const { return pairs() * PairDot::kRows * across() * 2; }
  Value firstRow() const;
  Value firstRecord() const;
  Stage stage(Value chunk) const;
  Value codesAt(Value codes, Value record, Value byte) const;
  Values fetch(At tileAt, Value chunk) const;
  void copyCodes(At recordAt, Value chunk, const Stage &to) const;
  llvm::SmallVector<Fresh> loadSteps(At recordAt, Value chunk) const;
  void storeSteps(llvm::ArrayRef<Fresh> all, const Stage &to) const;
  void multiply(llvm::ArrayRef<Value> words, Value chunk, const Stage &from, Values &sums) const;
  void multiplyRun(llvm::ArrayRef<PairDot::Bytes> weights, int64_t run, const Stage &from,
                   Values &sums) const;

  Block &block;
  KernelBuilder &k;
  TileShape shape;
  Value shared;
  PairDot dot;
  pack::ActType act;
  bool hasMinima;
};

} // namespace izhc::cuda
