// The product of one weight tile (16 rows) with many rows of activations, on a
// machine with a matrix unit. A panel of the tile, some weights of each row, is
// decoded to bytes once; groups of 16 rows of activations pass over it.

#pragma once

#include "compiler/target/vector/DecodedPanel.h"
#include "compiler/target/vector/MatrixUnit.h"
#include "compiler/target/vector/RowGroups.h"
#include "compiler/target/vector/TileProduct.h"

namespace izhc {

class PanelProduct {
public:
  using Value = mlir::Value;

  // Rows of a group, and the most that share a decoded panel.
  static constexpr int64_t kGroupRows = MatrixUnit::kRows, kMostRows = 128;
  static constexpr int64_t kScratchBytes = 34 * 1024;

  // Whether the machine has a unit that multiplies these.
  static bool serves(const VectorMachine &machine, const FormatSpec &format, pack::ActType act);

  // `scratch` is stack memory of kScratchBytes, `unpacking` of
  // TileProduct::kScratchBytes; both are shared by all products of a function.
  PanelProduct(KernelFrame &frame, const FormatSpec &format, pack::ActType act, int64_t cols,
               Value unpacking, Value scratch);

  int64_t tileBytes() const { return reader.layout.tileBytes(cols); }

  // Writes the sums of row i of group g of `rows` rows (kGroupRows..kMostRows)
  // to out + (16 * g + i) * outStride. Every sum is that of TileProduct::emit,
  // bit for bit. `first` is the record of row 0.
  void emit(Value tile, Value first, Value rows, Value out, int64_t outStride);

private:
  using Values = llvm::SmallVector<Value>;
  // A panel: units [firstUnit, firstUnit + units) of a tile.
  struct Panel {
    Value tile, firstUnit, units, chunks;
  };
  // What the groups of a pass share.
  struct Pass {
    Value first;
    RowGroups groups;
    Value out;
    int64_t outStride;
  };
  // One group at work: its record, that of the next, the place of its sums and
  // what to fetch meanwhile.
  struct Group {
    Value record, next, out, ahead;
    int64_t outStride;
  };

  void multiply(const Panel &panel, const Pass &pass);
  Value overChunks(const Panel &panel, const Group &group, Value buffer);
  Value overUnits(const Panel &panel, const Group &group, Value buffer);
  void addParts(const Panel &panel, const Group &group, Value chunk, Value buffer, Values &part);
  void addScaled(const Panel &panel, const Group &group, Value unit, const Values &part);

  void startChunk(const Panel &panel, Value record, Value chunk, Value buffer);
  Value startNext(const Panel &panel, const Group &group, Value chunk, Value buffer);
  Value actAt(const Panel &panel, Value record, Value chunk, int64_t field, int64_t bytesAChunk);
  Value rowValue(mlir::Type element, Value base, int64_t row, int64_t offset);
  Value vectorAt(Value place) { return k.load(floats, place, 64); }

  KernelBuilder &k;
  const MatrixUnit &unit;
  WeightReader reader;
  pack::ActType type;
  pack::ActLayout act;
  mlir::Type floats, ints;
  int64_t cols;
  bool grouped; // activations have exponents in groups of 256
  int64_t sums16Offset = -1;
  DecodedPanel decoded;
  Value buffers;
};

} // namespace izhc
