// Looks for scales, minima and float weights that are not numbers.

#include "compiler/formats/PackedLayout.h"
#include <cstring>

using namespace izhc;

// The largest exponent means infinity or no number.
template <typename Word>
static bool allFinite(const uint8_t *values, int64_t count, Word exponent) {
  bool finite = true;
  for (int64_t i = 0; i < count; ++i) {
    Word word;
    std::memcpy(&word, values + i * sizeof(Word), sizeof(Word));
    finite &= (word & exponent) != exponent;
  }
  return finite;
}

// Scales of a byte fill a vector at the start of each unit.
static bool byteScalesAreFinite(const PackedLayout &layout, const uint8_t *tile, int64_t cols) {
  int64_t bytes = PackedLayout::kTileRows * layout.unitWeights /
                  (layout.format->subWeights ? layout.format->subWeights : 32);
  uint8_t mask = layout.format->scaleKind == ScaleKind::PerSub ? 127 : 255;
  bool finite = true;
  for (int64_t unit = 0; unit < layout.unitsPerRow(cols); ++unit)
    for (int64_t i = 0; i < bytes; ++i)
      finite &= (tile[unit * layout.unitBytes + i] & mask) != mask;
  return finite;
}

// Scales whose pieces lie in words.
static bool scalesInPiecesAreFinite(const PackedLayout &layout, const uint8_t *tile, int64_t cols) {
  for (int64_t unit = 0; unit < layout.unitsPerRow(cols); ++unit, tile += layout.unitBytes)
    for (int64_t row = 0; row < PackedLayout::kTileRows; ++row) {
      uint32_t scale = 0;
      for (const BitField &field : layout.format->fields) {
        if (field.role != FieldRole::Scale)
          continue;
        uint32_t word;
        std::memcpy(&word, tile + layout.wordOffset(field.firstBit / 32) + 4 * row, 4);
        scale |= (word >> field.firstBit % 32 & ((1u << field.width) - 1)) << field.shift;
      }
      if ((scale & 0x7c00) == 0x7c00)
        return false;
    }
  return true;
}

bool izhc::tileIsFinite(const PackedLayout &layout, const uint8_t *tile, int64_t cols) {
  constexpr int64_t rows = PackedLayout::kTileRows;
  const FormatSpec &format = *layout.format;
  switch (format.kind) {
  case ElementKind::F32:
    return allFinite<uint32_t>(tile, rows * cols, 0x7f800000);
  case ElementKind::F16:
    return allFinite<uint16_t>(tile, rows * cols, 0x7c00);
  case ElementKind::BF16:
    return allFinite<uint16_t>(tile, rows * cols, 0x7f80);
  case ElementKind::Quantized:
    break;
  }
  if (format.grid && !layout.headBytes)
    return scalesInPiecesAreFinite(layout, tile, cols);
  if (format.scaleKind != ScaleKind::Half)
    return byteScalesAreFinite(layout, tile, cols);
  bool finite = true;
  for (int64_t unit = 0; unit < layout.unitsPerRow(cols); ++unit) {
    const uint8_t *at = tile + unit * layout.unitBytes;
    for (int64_t k = 0; k < layout.unitWeights; k += format.blockWeights) {
      finite &= allFinite<uint16_t>(at + layout.scaleOffset(k), rows, 0x7c00);
      if (format.hasMin)
        finite &= allFinite<uint16_t>(at + layout.minOffset(k), rows, 0x7c00);
    }
  }
  return finite;
}
