// The loops over tiles and rows of activations around the products of tiles:
// small groups of rows by TileProduct, many by PanelProduct where the machine
// has a matrix unit, else by DecodedProduct where it has vectors for that.

#pragma once

#include "compiler/target/vector/DecodedProduct.h"
#include "compiler/target/vector/PanelProduct.h"
#include "compiler/target/vector/Products.h"

namespace izhc {

// What multiplies `segments` where rows are many, and how many these are.
struct ManyRows {
  enum Kind { None, Panels, Decoded } kind = None;
  // Rows of a group, and from how many rows on.
  int64_t groupRows = 0, fewest = 0;
};
ManyRows manyRows(const KernelFrame &frame, pack::ActType act, llvm::ArrayRef<Segment> segments);

// The stack memory that such products of a function share; null if there are none.
mlir::Value manyRowsScratch(const KernelFrame &frame);

// One pass over rows of activations: the sums of `rows` rows from `first` on
// are made, in groups.
struct PanelPass {
  int64_t groupRows;
  mlir::Value first, rows;
  mlir::Value begin, count; // the first row that no pass had before; all rows

  // Calls `body` for each group of rows from `begin` on, with the number of
  // sums of the pass that lie in front of those of its first row.
  void
  forGroups(KernelBuilder &k,
            llvm::function_ref<void(mlir::Value first, mlir::Value rows, mlir::Value sumsBefore)>
                body) const;
};

// Passes over `count` >= `groupRows` rows, of up to `most` rows each (a multiple
// of `groupRows`).
void forPanelPasses(KernelBuilder &k, mlir::Value count, int64_t groupRows, int64_t most,
                    llvm::function_ref<void(const PanelPass &pass)> body);

class SegmentProducts {
public:
  using Value = mlir::Value;

  // Rows first..first+count of activations: their sums with a tile, one
  // vector of 16 floats a row, lie at sums[i] for matrix i.
  struct Rows {
    Value tile, first, count;
    llvm::SmallVector<Value, 2> sums;
  };

  // Makes the stack memory that products of up to `matrices` matrices with the
  // same activations need.
  SegmentProducts(KernelFrame &frame, pack::ActType act, int64_t matrices);

  // Products of tiles begin..end (the frame's) of every segment with rows
  // 0..count of `records`. `finish` is called once for each row of each tile.
  void emit(llvm::ArrayRef<Segment> segments, Value records, Value count,
            llvm::function_ref<void(const Rows &rows)> finish);

private:
  using Finish = llvm::function_ref<void(const Rows &rows)>;
  void emitFew(llvm::ArrayRef<Segment> segments, Value records, Value count, Finish finish);
  void emitPanels(llvm::ArrayRef<Segment> segments, Value records, Value count, Finish finish);
  void emitDecoded(llvm::ArrayRef<Segment> segments, Value records, Value count, Value end,
                   Finish finish);
  Value endOfDecoded(llvm::ArrayRef<Segment> segments);

  KernelFrame &frame;
  KernelBuilder &k;
  pack::ActType act;
  int64_t stride;
  Value unpacking, panel;
  llvm::SmallVector<Value, 2> sums;
};

} // namespace izhc
