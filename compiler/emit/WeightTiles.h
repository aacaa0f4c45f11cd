// The tiles of a matrix and the rows that they are packed from. Internal to
// compiler/emit.

#pragma once

#include "compiler/emit/Artifact.h"
#include "compiler/formats/PackedLayout.h"
#include <utility>

namespace izhc::emit {

// Bytes of a row as the source has it.
uint64_t rowBytes(const Weight &weight);

class WeightTiles {
public:
  // Both must outlive this object.
  WeightTiles(const Weight &weight, const SourceTensor &source);

  // Of all matrices together.
  uint64_t count() const { return each * weight.count; }
  uint64_t bytes() const { return tileBytes; }

  // Packs tiles firstTile .. firstTile + count to `out`, which has room for
  // them. False if a scale is no number.
  bool pack(uint64_t firstTile, uint64_t count, uint8_t *out) const;
  // Hands back the source's pages of these tiles.
  void release(TensorSource &tensors, uint64_t firstTile, uint64_t count) const;

private:
  int64_t firstRow(uint64_t tile) const;
  int64_t rowsOf(uint64_t firstTile, uint64_t count) const;
  std::pair<int64_t, int64_t> span(uint64_t firstTile, uint64_t count) const;
  const uint8_t *read(uint64_t tile, std::vector<uint8_t> &copy) const;

  const Weight &weight;
  const SourceTensor &source;
  PackedLayout layout;
  uint64_t tileBytes;
  uint64_t each; // tiles of one matrix
};

} // namespace izhc::emit
