// Encoded matrices as threads read them: the tiles of 16 rows that processors
// read too (compiler/formats/PackedLayout.h). A row of the tile belongs to a
// lane, so that neighbouring lanes read neighbouring words.

#pragma once

#include "compiler/formats/PackedLayout.h"
#include "dialects/pack/ActLayout.h"
#include "targets/cuda/codegen/Block.h"
#include "targets/cuda/codegen/Spans.h"
#include <optional>

namespace izhc::cuda {

// Four packed codes as signed bytes, the zero point subtracted, times a power of
// two; and what one of them means in steps of the codes.
mlir::Value signedBytes(KernelBuilder &k, const FormatSpec &format, mlir::Value four);
double signedUnit(const FormatSpec &format);

class Weights {
public:
  using Value = mlir::Value;
  using Values = KernelBuilder::Values;

  // Fails with a diagnostic at `op` where the format is not known.
  static std::optional<Weights> of(mlir::Operation *op, Block &block, mlir::Type type);

  pack::WeightType weightType() const { return type; }
  int64_t rows() const { return type.getRows(); }
  int64_t tiles() const { return (rows() + PackedLayout::kTileRows - 1) / PackedLayout::kTileRows; }
  int64_t tileBytes() const { return layout.tileBytes(type.getCols()); }
  int64_t matrixBytes() const { return layout.matrixBytes(rows(), type.getCols()); }

  // Whether products with records of `act` exist; else emits a diagnostic.
  bool takes(mlir::Operation *op, pack::ActType act) const;

  // The sum of span number `span` of row `row` of a tile with each record. All
  // i64.
  Values dot(Value tile, Value row, Value span, llvm::ArrayRef<Value> records,
             pack::ActType act) const;
  Spans spans() const { return Spans(type.getCols()); }

  // Number of the runs of weights of a row, and a run's weights.
  int64_t runs() const { return isFloat() ? type.getCols() : type.getCols() / runWeights(); }
  int64_t runWeights() const { return isFloat() ? 1 : format.subWeights ? format.subWeights : 32; }
  // Decodes run `index` of a row: body(i, weight) for i in the whole row.
  void decode(Value tile, Value row, Value index,
              llvm::function_ref<void(Value i, Value weight)> body) const;

  // Of float weights: 32 bits that hold that of row `row` and column `index`, loaded as
  // Block::fetch does; and the weight that such bits hold of the row.
  Value fetchFloat(Value tile, Value row, Value index) const;
  Value floatIn(Value bits, Value row) const;
  static bool hasFloats(pack::WeightType type);

  // A run as signed bytes, four codes a word, the zero point subtracted, and w
  // and m of Spans.h; m is null without minima. Bytes may be a power of two times
  // the codes, and w as much smaller.
  struct Bytes {
    Values codes;
    Value factor, minimum;
  };
  Bytes bytes(Value tile, Value row, Value index) const;
  // Whether codes less the zero point fit into signed bytes.
  static bool hasByteCodes(pack::WeightType type);
  bool hasMinima() const { return format.hasMin; }

  // What one step of the activations' codes means at column `first`.
  Value actScale(Value record, Value first, pack::ActType act) const;

private:
  // Weights of a row that share all scales: weight i is
  // scale * sub * (code(i) - zero point) -/+ min * subMin.
  struct Run {
    Value first;       // number of its first weight in the row
    Value row;         // in the tile
    Value scale, min;  // float32; no min: null
    Value sub, subMin; // i32; none: null
    Value unit, inUnit;
    Value chunk, inChunk; // the 64 weights that it lies in
  };

  Weights(Block &block, const FormatSpec &format, pack::WeightType type)
      : block(block), k(block.k), format(format), layout(format), type(type) {}

  bool isFloat() const { return format.kind != ElementKind::Quantized; }
  bool signedCodes() const { return format.grid || format.signedCodes; }
  // What is still to be subtracted from packed codes.
  int64_t zeroPoint() const { return format.grid ? 0 : format.zeroPoint; }
  Value floatWeight(Value tile, Value row, Value index) const;
  Run run(Value tile, Value row, Value index) const;
  Value scale(const Run &run) const;
  void readSubScales(Run &run, Value chunkNumber) const;
  Value half(const Run &run, int64_t first, int64_t second) const;
  // Codes i .. i + 3 of the run as bytes; i is a multiple of 4.
  Value codes(const Run &run, int64_t i) const;
  Value plainCode(Value four, int64_t j) const; // as i32, zero point subtracted
  // w and m of Spans.h; null without minima.
  Value factor(const Run &run) const;
  Value minimum(const Run &run) const;
  Value sumOf(const Run &run, Value record, int64_t field, int64_t codes, mlir::Type type) const;
  Value addRun(const Run &run, llvm::ArrayRef<Value> codes, Value record, pack::ActType act,
               Value sum) const;

  Block &block;
  KernelBuilder &k;
  const FormatSpec &format;
  PackedLayout layout;
  pack::WeightType type;
};

} // namespace izhc::cuda
