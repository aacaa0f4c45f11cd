// Reads an encoded matrix one weight at a time from the planes and scales of
// compiler/formats/PackedLayout.h.

#pragma once

#include "compiler/formats/PackedLayout.h"
#include "compiler/target/KernelBuilder.h"
#include "dialects/pack/ActLayout.h"
#include <optional>

namespace izhc::reference {

class Weights {
public:
  using Value = mlir::Value;

  // One row: its tile's address and its lane in the tile.
  struct Row {
    Value tile, lane;
  };

  // Weights of a row that share all scales: weight i of the run is
  // scale * sub * code(i) -/+ min * subMin.
  struct Run {
    Value first;       // number of its first weight in the row
    Value scale, min;  // float32; no min: null
    Value sub, subMin; // i32; none: null
    // Address of the chunk of 64 weights that it lies in, and its place there.
    Value chunk, inChunk;
    Value unit, inUnit; // the same of the unit
    Value lane;
  };

  // Fails with a diagnostic at `op` where the format is not known.
  static std::optional<Weights> of(mlir::Operation *op, KernelBuilder &k, mlir::Type type);

  Row row(Value base, Value index) const;

  // The weights of `row` decoded, in order: calls body(k, weight) within loops.
  void forEach(const Row &row, llvm::function_ref<void(Value k, Value weight)> body) const;

  // The product of a row with a record of activations, as float32. Fails with
  // a diagnostic at `op` for float weights and integer activations.
  llvm::FailureOr<Value> dot(mlir::Operation *op, const Row &row, Value record,
                             pack::ActType act) const;

private:
  Weights(KernelBuilder &k, const FormatSpec &format, int64_t cols)
      : k(k), format(format), layout(format), cols(cols) {}

  bool isFloat() const { return format.kind != ElementKind::Quantized; }
  int64_t runWeights() const { return format.subWeights ? format.subWeights : 32; }
  Value floatWeight(const Row &row, Value index) const;
  Run run(const Row &row, Value index) const;
  void readSubScales(Run &run, Value unit, Value chunkNumber) const;
  // The code of weight i of the run less the zero point, as i32.
  Value code(const Run &run, Value i) const;
  Value weight(const Run &run, Value i) const;
  Value dotFloats(const Row &row, Value record) const;
  Value dotCodes(const Row &row, Value record, pack::ActType act) const;

  KernelBuilder &k;
  const FormatSpec &format;
  PackedLayout layout;
  int64_t cols;
};

} // namespace izhc::reference
