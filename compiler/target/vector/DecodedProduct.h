// The product of weight tiles with many rows of activations, with the vector
// unit's dots. A panel of the tiles, some weights of each row, is decoded once;
// groups of rows pass over it. Unpacking then costs next to nothing, and each
// value of activations that is loaded serves two vectors of weights.

#pragma once

#include "compiler/target/vector/DecodedPanel.h"
#include "compiler/target/vector/RowGroups.h"
#include "compiler/target/vector/TileProduct.h"

namespace izhc {

class DecodedProduct {
public:
  using Value = mlir::Value;

  // The most rows of a group and of those that share a decoded panel, and from
  // how many on decoding pays.
  static constexpr int64_t kMostGroup = 6, kMostRows = 258, kFewestRows = 16;
  static constexpr int64_t kVectors = 2;
  static constexpr int64_t kPanelWeights = 512;

  static bool serves(const VectorMachine &machine, const FormatSpec &format, pack::ActType act);
  // Rows of a group: their integer and float sums take three quarters of the
  // registers.
  static int64_t groupRows(const VectorMachine &machine) {
    return machine.vectorRegisters * 3 / 16;
  }
  // Tiles that are multiplied together.
  static int64_t tilesAtOnce(const VectorMachine &machine) {
    return kVectors * machine.lanes / PackedLayout::kTileRows;
  }
  static constexpr int64_t kScratchBytes =
      kVectors * DecodedPanel::bytesFor(kPanelWeights) + kMostGroup * kPanelWeights / 16 * 4 * 3;

  // `scratch` is stack memory of kScratchBytes, `unpacking` of
  // TileProduct::kScratchBytes; both are shared by all products of a function.
  DecodedProduct(KernelFrame &frame, const FormatSpec &format, pack::ActType act, int64_t cols,
                 Value unpacking, Value scratch);

  int64_t tileBytes() const { return reader.layout.tileBytes(cols); }

  // For each of tilesAtOnce tiles: writes the sums of row i of group g of
  // `rows` rows (groupRows..kMostRows) to its out + (groupRows * g + i) *
  // outStride. Every sum is that of TileProduct::emit, bit for bit. `first` is
  // the record of row 0.
  void emit(llvm::ArrayRef<Value> tiles, Value first, Value rows, llvm::ArrayRef<Value> out,
            int64_t outStride);

private:
  using Values = llvm::SmallVector<Value>;
  // Units [firstUnit, firstUnit + units) of the tiles.
  struct Span {
    Value firstUnit, units, chunks;
  };
  // A group at work: its first record, the place of its sums for each vector,
  // and what to fetch meanwhile for each tile.
  struct Group {
    Value record;
    Values out, ahead;
    int64_t outStride;
  };

  void prepare(const Span &span, const Group &group);
  void prepareField(const Span &span, const Group &group, int64_t field, int64_t weights,
                    llvm::function_ref<void(int64_t row, Value place, Value bits)> body);
  void overChunks(const Span &span, const Group &group);
  void overUnits(const Span &span, const Group &group);
  void addParts(const Span &span, const Group &group, Value chunk, Values &parts);
  void addScaled(const Span &span, const Group &group, Value unit, const Values &parts);
  void fetchAhead(const Group &group, Value chunk);
  Values dots(const Span &span, const Group &group, Value chunk, int64_t s);
  Values vectors(llvm::function_ref<Value(DecodedPanel &panel)> place);
  Value field(const Span &span, const Group &group, Value chunk, int64_t offset,
              int64_t bytesAChunk);
  Value rowValue(mlir::Type element, Value base, int64_t row, int64_t offset);
  Value prepared(int64_t which, int64_t row) {
    return k.at(rowScratch, (which * kMostGroup + row) * (kPanelWeights / 16 * 4));
  }
  template <typename Body> void forSums(Body body) {
    for (int64_t r = 0; r < size; ++r)
      for (int64_t v = 0; v < kVectors; ++v)
        body(r, v, size_t(r * kVectors + v));
  }

  KernelBuilder &k;
  WeightReader reader;
  pack::ActType type;
  pack::ActLayout act;
  ActSums fields;
  int64_t cols, lanes;
  int64_t size; // rows of a group
  // Sums of integers are made on top of the bits of 1.5 * 2^23, so that they
  // are floats, larger by that number, without a conversion.
  bool biased;
  bool grouped; // activations have exponents in groups of 256
  mlir::Type floats, ints;
  llvm::SmallVector<DecodedPanel, 2> panels;
  Value rowScratch;
};

} // namespace izhc
