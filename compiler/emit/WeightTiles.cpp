// Which rows a tile has, where they lie, and packing them.

#include "compiler/emit/WeightTiles.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>

using namespace izhc;
using namespace izhc::emit;

uint64_t emit::rowBytes(const Weight &weight) {
  return weight.cols / weight.format->blockWeights * weight.format->blockBytes;
}

WeightTiles::WeightTiles(const Weight &weight, const SourceTensor &source)
    : weight(weight), source(source), layout(*weight.format),
      tileBytes(layout.tileBytes(weight.cols)),
      each(llvm::divideCeil(weight.rows, PackedLayout::kTileRows)) {}

// All matrices counted through.
int64_t WeightTiles::firstRow(uint64_t tile) const {
  uint64_t inMatrix = tile % each * PackedLayout::kTileRows;
  return tile / each * weight.rows + inMatrix;
}

int64_t WeightTiles::rowsOf(uint64_t firstTile, uint64_t count) const {
  return firstRow(firstTile + count) - firstRow(firstTile);
}

// Rows of the tensor from the first to the last that the tiles take.
std::pair<int64_t, int64_t> WeightTiles::span(uint64_t firstTile, uint64_t count) const {
  int64_t first = firstRow(firstTile), last = first + rowsOf(firstTile, count) - 1;
  return {sourceRow(weight.view, first), sourceRow(weight.view, last) + 1};
}

// The rows of a tile, one behind the other: where they lie, or in `copy`.
const uint8_t *WeightTiles::read(uint64_t tile, std::vector<uint8_t> &copy) const {
  uint64_t bytes = rowBytes(weight);
  int64_t rows = rowsOf(tile, 1);
  auto [first, end] = span(tile, 1);
  bool together = end - first == rows;
  if (together && !source.reader)
    return source.bytes.data() + first * bytes;
  copy.resize(PackedLayout::kTileRows * bytes);
  if (together) {
    source.reader->read(first, rows, copy.data());
    return copy.data();
  }
  for (int64_t i = 0; i < rows; ++i) {
    uint64_t row = sourceRow(weight.view, firstRow(tile) + i);
    if (source.reader)
      source.reader->read(row, 1, copy.data() + i * bytes);
    else
      memcpy(copy.data() + i * bytes, source.bytes.data() + row * bytes, bytes);
  }
  return copy.data();
}

bool WeightTiles::pack(uint64_t firstTile, uint64_t count, uint8_t *out) const {
  std::vector<uint8_t> copy;
  bool finite = true;
  for (uint64_t tile = firstTile; tile < firstTile + count; ++tile, out += tileBytes) {
    packTile(layout, read(tile, copy), rowsOf(tile, 1), rowBytes(weight), weight.cols, out);
    finite &= tileIsFinite(layout, out, weight.cols);
  }
  return finite;
}

void WeightTiles::release(TensorSource &tensors, uint64_t firstTile, uint64_t count) const {
  auto [first, end] = span(firstTile, count);
  uint64_t bytes = rowBytes(weight);
  if (source.reader)
    source.reader->release(first, end - first);
  else
    tensors.release(source.bytes.slice(first * bytes, (end - first) * bytes));
}
