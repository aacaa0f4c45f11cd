// Some weights of each row of a tile as bytes and float32 scales, in memory:
// decoded once, read by many rows of activations.
//
// Vectors of 64 bytes hold what belongs to the 16 rows, as in the packed
// layout. Chunks of 64 weights lie one after another: 16 vectors of codes, a
// vector of scales for each step (weights that share a scale), one of shifts,
// one of minima. In units of 256 these are products: scale * sub-scale and
// -(minimum * sub-minimum).

#pragma once

#include "compiler/target/vector/WeightReader.h"

namespace izhc {

class DecodedPanel {
public:
  using Value = mlir::Value;

  static constexpr int64_t kVector = 4 * PackedLayout::kTileRows;

  // `shift` != 0: beside each scale of flat formats lies `shift` times it.
  // `lessZeroPoint`: codes are signed bytes, less the zero point.
  struct Options {
    double shift = 0;
    bool lessZeroPoint = false;
  };
  // `memory` has bytesFor(weights), `unpacking` is that of TileProduct.
  DecodedPanel(KernelBuilder &k, const WeightReader &reader, Options options, int64_t weights,
               Value unpacking, Value memory);
  // For panels of `weights` weights (a multiple of 256) of any format: a chunk
  // has two vectors for each 16 weights, or three for each 32, beside its codes.
  static constexpr int64_t bytesFor(int64_t weights) {
    return weights / 64 * (16 + 8) * kVector;
  }

  bool nested;   // units of 256
  int64_t step;  // weights that share a scale: 16 or 32
  int64_t steps; // of them in a chunk

  // Decodes units [firstUnit, firstUnit + units) of a tile.
  void decode(Value tile, Value firstUnit, Value units);

  // Places, of chunk number `chunk` of the panel. Codes kk..kk+3 of a chunk (kk
  // a multiple of 4).
  Value codes(Value chunk, int64_t kk) { return chunkAt(chunk, kk / 4 * kVector); }
  Value scales(Value chunk, int64_t s) { return chunkAt(chunk, scalesOffset + s * kVector); }
  Value shifts(Value chunk, int64_t s) { return chunkAt(chunk, shiftsOffset + s * kVector); }
  Value minima(Value chunk, int64_t s) { return chunkAt(chunk, minimaOffset + s * kVector); }

private:
  // Scale and negative minimum of a unit of 256; null in flat formats.
  struct Head {
    Value scale, minimum;
  };
  void decodePart(Value tile, Value firstUnit, Value units, int64_t part);
  void decodeChunk(Value codes, Value subs, Value halves, const Head &head, Value chunk,
                   int64_t part);
  Value chunkAt(Value chunk, int64_t offset);
  void store(Value vector, Value place, int64_t part);

  KernelBuilder &k;
  WeightReader reader;
  Options options;
  int64_t scalesOffset, shiftsOffset, minimaOffset, chunkBytes;
  Value unpacking, chunks;
};

} // namespace izhc
