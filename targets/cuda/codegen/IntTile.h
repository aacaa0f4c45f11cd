// Products of a tile of weight rows with a tile of records on the tensor cores
// for integers. Weights are decoded to bytes in shared memory, one step of
// columns while the one before is multiplied; each thread has its share of the
// sums in registers. Adds as Spans.h says.

#pragma once

#include "targets/cuda/codegen/Weights.h"

namespace izhc::cuda {

// How a block of threads divides a tile. A warp has rows / warpsDown rows and
// records / warpsAcross records, multiples of 16.
struct TileShape {
  int64_t rows, records;
  int64_t columns; // of a step, a multiple of 32
  int64_t warpsDown, warpsAcross;
  int64_t together; // blocks of a multiprocessor that registers have to suffice for

  int64_t warps() const { return warpsDown * warpsAcross; }
  int64_t threads() const { return kWarp * warps(); }
  int64_t tiles() const { return rows / PackedLayout::kTileRows; }
};

class IntTile {
public:
  using Value = mlir::Value;
  using Values = KernelBuilder::Values;

  // Shared memory that a tile takes, which is free after `compute`.
  static int64_t sharedBytes(const TileShape &shape);
  // Whether there is code for such weights and records.
  static bool takes(pack::WeightType weights, pack::ActType act);

  IntTile(Block &block, const TileShape &shape, Value shared)
      : block(block), k(block.k), shape(shape), shared(shared) {}

  // The sums of rows with records; tileAt(i) is the address of the i-th 16 rows,
  // recordAt(i) that of a record. All threads call it; after it all may write to
  // the shared memory.
  Values compute(const Weights &weights, llvm::function_ref<Value(Value i)> tileAt,
                 llvm::function_ref<Value(Value i)> recordAt, pack::ActType act);
  // A row of the tile and a record's number, and what belongs there.
  struct Sum {
    Value row, record, value;
    Value second; // of the other matrix, where there are two
  };
  // Calls `body` with some sums of the thread at a time, until it had all. `paired`:
  // even and odd 16 rows of the tile are those of two matrices; `row` is among the
  // rows of each.
  void forSums(const Values &sums, bool paired,
               llvm::function_ref<void(llvm::ArrayRef<Sum> some)> body);

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
