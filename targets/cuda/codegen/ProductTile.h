// Products of a tile of weight rows with a tile of records on the tensor cores
// for integers; each thread has its share of the sums in registers. Adds as Spans.h
// says.

#pragma once

#include "targets/cuda/codegen/Weights.h"
#include <memory>

namespace izhc::cuda {

// How a block of threads divides a tile. A warp has rows / warpsDown rows and
// records / warpsAcross records: of weights that PairDot reads multiples of 32 and
// 16, of others of 16.
struct TileShape {
  int64_t rows, records;
  int64_t columns; // of a step, a multiple of 32
  int64_t warpsDown, warpsAcross;
  int64_t together; // blocks of a multiprocessor that registers have to suffice for
  // Warps that divide the columns, of weights that PairDot reads (PairSplit); then
  // rows are 32 * warpsDown, and warpsAcross is 1.
  int64_t split = 1;

  int64_t warps() const { return warpsDown * warpsAcross * split; }
  int64_t threads() const { return kWarp * warps(); }
  int64_t tiles() const { return rows / PackedLayout::kTileRows; }
};

class ProductTile {
public:
  using Value = mlir::Value;
  using Values = KernelBuilder::Values;
  using At = llvm::function_ref<Value(Value i)>;

  virtual ~ProductTile() = default;

  // Whether there is code for such weights and records; and for shapes that split.
  static bool takes(pack::WeightType weights, pack::ActType act);
  static bool splits(pack::WeightType weights, pack::ActType act);
  // Shared memory that a tile takes, which is free after `compute`.
  static int64_t sharedBytes(const TileShape &shape, pack::WeightType weights, pack::ActType act);
  static std::unique_ptr<ProductTile> make(Block &block, const TileShape &shape, Value shared,
                                           pack::WeightType weights, pack::ActType act);

  // The sums of rows with records; tileAt(i) is the address of the i-th 16 rows,
  // recordAt(i) that of a record. All threads call it; after it all may write to
  // the shared memory.
  virtual Values compute(const Weights &weights, At tileAt, At recordAt, pack::ActType act) = 0;
  // A row of the tile and a record's number, and what belongs there.
  struct Sum {
    Value row, record, value;
    Value second; // of the other matrix, where there are two
  };
  // Calls `body` with some sums of the thread at a time, until it had all. `paired`:
  // even and odd 16 rows of the tile are those of two matrices; `row` is among the
  // rows of each. All lanes call it together.
  virtual void forSums(const Values &sums, bool paired,
                       llvm::function_ref<void(llvm::ArrayRef<Sum> some)> body) = 0;
};

} // namespace izhc::cuda
