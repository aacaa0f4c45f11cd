// GGUF rows to packed tiles and back. Codes pass through one byte each
// (RawBlock); from there four codes at a time are moved as one 32-bit word,
// which is how the layout keeps them: byte 4r+c of a vector is row r, code c.

#include "compiler/formats/PackedLayout.h"
#include "compiler/formats/RawBlock.h"

#include <cassert>
#include <cstring>

using namespace izhc;
using formats::RawBlock;

static constexpr int64_t kRows = PackedLayout::kTileRows;

template <typename T> static T load(const uint8_t *from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

template <typename T> static void store(uint8_t *to, T value) {
  std::memcpy(to, &value, sizeof(T));
}

namespace {
// Where the code vectors of a block go, computed once a tile: finding offsets
// for each row and block would cost more than moving the codes.
struct VectorPlace {
  // In a block of the unit, and the first weight of the block that it covers.
  int64_t offset, firstWeight;
  uint32_t width, shift;
};

struct TileMap {
  explicit TileMap(const PackedLayout &layout);
  int64_t blocksInUnit;
  llvm::SmallVector<VectorPlace, 64> vectors[2];
};
} // namespace

TileMap::TileMap(const PackedLayout &layout) {
  int64_t blockWeights = layout.format->blockWeights;
  blocksInUnit = layout.unitWeights / blockWeights;
  for (int64_t block = 0; block < blocksInUnit; ++block)
    for (size_t plane = 0; plane < layout.planes.size(); ++plane)
      for (int64_t k = 0; k < blockWeights; k += 32 / layout.planes[plane].width)
        vectors[block].push_back({layout.planeOffset(plane, block * blockWeights + k), k,
                                  layout.planes[plane].width, layout.planes[plane].shift});
}

//===----------------------------------------------------------------------===//
// Codes
//===----------------------------------------------------------------------===//

// The low `width` bits of each byte of a word.
static constexpr uint32_t byteMask(uint32_t width) { return ((1u << width) - 1) * 0x01010101u; }

// With the width known, the compiler unrolls the loop.
template <uint32_t width> static uint32_t packWord(const uint8_t *codes, uint32_t shift) {
  uint32_t word = 0;
  for (uint32_t bit = 0; bit < 8; bit += width, codes += 4)
    word |= (load<uint32_t>(codes) >> shift & byteMask(width)) << bit;
  return word;
}

static void packCodes(llvm::ArrayRef<VectorPlace> places, const uint8_t *codes, int64_t row,
                      uint8_t *unit) {
  for (const VectorPlace &place : places) {
    const uint8_t *from = codes + place.firstWeight;
    uint32_t word = place.width == 4   ? packWord<4>(from, place.shift)
                    : place.width == 2 ? packWord<2>(from, place.shift)
                    : place.width == 1 ? packWord<1>(from, place.shift)
                                       : packWord<8>(from, place.shift);
    store(unit + place.offset + 4 * row, word);
  }
}

// `codes` must be zero.
static void unpackCodes(llvm::ArrayRef<VectorPlace> places, const uint8_t *unit, int64_t row,
                        uint8_t *codes) {
  for (const VectorPlace &place : places) {
    uint32_t mask = byteMask(place.width);
    uint32_t word = load<uint32_t>(unit + place.offset + 4 * row);
    uint8_t *to = codes + place.firstWeight;
    for (uint32_t bit = 0; bit < 8; bit += place.width, to += 4)
      store(to, load<uint32_t>(to) | (word >> bit & mask) << place.shift);
  }
}

//===----------------------------------------------------------------------===//
// Sub-block scales
//===----------------------------------------------------------------------===//

// Value j of chunk q among the 16 six-bit values of a row.
static uint8_t &sixBit(RawBlock &raw, bool hasMin, int q, int j) {
  if (!hasMin)
    return raw.sub[4 * q + j];
  return j < 2 ? raw.sub[2 * q + j] : raw.subMin[2 * q + j - 2];
}

static void packSixBit(bool hasMin, RawBlock &raw, uint8_t *at) {
  for (int j = 0; j < 4; ++j) {
    uint8_t t[4];
    for (int q = 0; q < 4; ++q)
      t[q] = sixBit(raw, hasMin, q, j);
    at[j] = (t[0] & 15) | (t[1] & 15) << 4;
    at[64 + j] = (t[2] & 15) | (t[3] & 15) << 4;
    at[128 + j] = t[0] >> 4 | t[1] >> 4 << 2 | t[2] >> 4 << 4 | t[3] >> 4 << 6;
  }
}

static void unpackSixBit(bool hasMin, const uint8_t *at, RawBlock &raw) {
  for (int j = 0; j < 4; ++j)
    for (int q = 0; q < 4; ++q) {
      uint8_t low = at[64 * (q / 2) + j] >> 4 * (q % 2) & 15;
      uint8_t high = at[128 + j] >> 2 * q & 3;
      sixBit(raw, hasMin, q, j) = low | high << 4;
    }
}

static void packEight(const RawBlock &raw, uint8_t *low, uint8_t *high) {
  uint32_t lowBits = 0, highBits = 0;
  for (int i = 0; i < 8; ++i) {
    lowBits |= uint32_t(raw.sub[i] & 15) << 4 * i;
    highBits |= uint32_t(raw.sub[i] >> 4) << 2 * i;
  }
  store(low, lowBits);
  store(high, static_cast<uint16_t>(highBits));
}

static void unpackEight(const uint8_t *low, const uint8_t *high, RawBlock &raw) {
  uint32_t lowBits = load<uint32_t>(low), highBits = load<uint16_t>(high);
  for (int i = 0; i < 8; ++i)
    raw.sub[i] = (lowBits >> 4 * i & 15) | (highBits >> 2 * i & 3) << 4;
}

static void packSubs(const PackedLayout &layout, RawBlock &raw, int64_t row, uint8_t *unit) {
  bool hasMin = layout.format->hasMin;
  if (layout.subs == SubScales::SixBitEight)
    return packEight(raw, unit + layout.subOffset(0) + 4 * row,
                     unit + layout.highOffset() + 2 * row);
  if (layout.subs == SubScales::SixBitPacked)
    return packSixBit(hasMin, raw, unit + layout.subOffset(0) + 4 * row);
  if (layout.subs != SubScales::InChunk)
    return;
  for (int i = 0, count = layout.unitWeights / 16; i < count; ++i)
    unit[layout.subOffset(i / 4) + 4 * row + i % 4] =
        hasMin ? raw.sub[i] | raw.subMin[i] << 4 : raw.sub[i];
}

static void unpackSubs(const PackedLayout &layout, const uint8_t *unit, int64_t row,
                       RawBlock &raw) {
  bool hasMin = layout.format->hasMin;
  if (layout.subs == SubScales::SixBitEight)
    return unpackEight(unit + layout.subOffset(0) + 4 * row, unit + layout.highOffset() + 2 * row,
                       raw);
  if (layout.subs == SubScales::SixBitPacked)
    return unpackSixBit(hasMin, unit + layout.subOffset(0) + 4 * row, raw);
  if (layout.subs != SubScales::InChunk)
    return;
  for (int i = 0, count = layout.unitWeights / 16; i < count; ++i) {
    uint8_t value = unit[layout.subOffset(i / 4) + 4 * row + i % 4];
    raw.sub[i] = hasMin ? value & 15 : value;
    raw.subMin[i] = hasMin ? value >> 4 : 0;
  }
}

// The scale of a block in its unit.
static void packScale(const PackedLayout &layout, uint16_t scale, int64_t row, int64_t part,
                      uint8_t *unit) {
  if (layout.format->scaleKind == ScaleKind::PowerOfTwo)
    unit[2 * row + part] = static_cast<uint8_t>(scale);
  else if (layout.format->scaleKind == ScaleKind::Half)
    store(unit + layout.scaleOffset(part * layout.format->blockWeights) + 2 * row, scale);
}

static uint16_t unpackScale(const PackedLayout &layout, const uint8_t *unit, int64_t row,
                            int64_t part) {
  if (layout.format->scaleKind == ScaleKind::PowerOfTwo)
    return unit[2 * row + part];
  if (layout.format->scaleKind == ScaleKind::PerSub)
    return 0;
  return load<uint16_t>(unit + layout.scaleOffset(part * layout.format->blockWeights) + 2 * row);
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

// Value k of row r lies at k * 16 + r.
template <typename T>
static void packFloats(const uint8_t *rows, int64_t rowCount, int64_t rowBytes, int64_t cols,
                       uint8_t *out) {
  int64_t size = sizeof(T);
  for (int64_t k = 0; k < cols; ++k)
    for (int64_t row = 0; row < kRows; ++row)
      store(out + (k * kRows + row) * size,
            row < rowCount ? load<T>(rows + row * rowBytes + k * size) : T(0));
}

template <typename T>
static void unpackFloats(const uint8_t *tile, int64_t rowCount, int64_t rowBytes, int64_t cols,
                         uint8_t *rows) {
  int64_t size = sizeof(T);
  for (int64_t row = 0; row < rowCount; ++row)
    for (int64_t k = 0; k < cols; ++k)
      store(rows + row * rowBytes + k * size, load<T>(tile + (k * kRows + row) * size));
}

// Where the scale of a block with words lies, and its words.
static int64_t scaleByte(const PackedLayout &layout) {
  return layout.firstWordByte ? 0 : 4 * layout.words;
}

static void packWords(const PackedLayout &layout, const uint8_t *rows, int64_t rowCount,
                      int64_t rowBytes, int64_t cols, uint8_t *out) {
  for (int64_t unit = 0; unit < layout.unitsPerRow(cols); ++unit, out += layout.unitBytes) {
    std::memset(out, 0, layout.unitBytes);
    for (int64_t row = 0; row < rowCount; ++row) {
      const uint8_t *block = rows + row * rowBytes + unit * layout.format->blockBytes;
      if (layout.headBytes)
        store(out + 2 * row, load<uint16_t>(block + scaleByte(layout)));
      for (int64_t word = 0; word < layout.words; ++word)
        store(out + layout.wordOffset(word) + 4 * row,
              load<uint32_t>(block + layout.firstWordByte + 4 * word));
    }
  }
}

static void unpackWords(const PackedLayout &layout, const uint8_t *tile, int64_t rowCount,
                        int64_t rowBytes, int64_t cols, uint8_t *rows) {
  for (int64_t unit = 0; unit < layout.unitsPerRow(cols); ++unit, tile += layout.unitBytes)
    for (int64_t row = 0; row < rowCount; ++row) {
      uint8_t *block = rows + row * rowBytes + unit * layout.format->blockBytes;
      if (layout.headBytes)
        store(block + scaleByte(layout), load<uint16_t>(tile + 2 * row));
      for (int64_t word = 0; word < layout.words; ++word)
        store(block + layout.firstWordByte + 4 * word,
              load<uint32_t>(tile + layout.wordOffset(word) + 4 * row));
    }
}

void izhc::packTile(const PackedLayout &layout, const uint8_t *rows, int64_t rowCount,
                    int64_t rowBytes, int64_t cols, uint8_t *out) {
  const FormatSpec &format = *layout.format;
  assert(cols % format.blockWeights == 0 && "rows are whole blocks");
  if (format.kind != ElementKind::Quantized) {
    if (format.blockBytes == 4)
      packFloats<uint32_t>(rows, rowCount, rowBytes, cols, out);
    else
      packFloats<uint16_t>(rows, rowCount, rowBytes, cols, out);
    return;
  }

  if (format.grid)
    return packWords(layout, rows, rowCount, rowBytes, cols, out);

  // What fills up a tile adds nothing to any sum.
  RawBlock empty = {};
  if (format.codebook.empty())
    std::memset(empty.code, static_cast<uint8_t>(format.zeroPoint), sizeof(empty.code));

  TileMap map(layout);
  int64_t blocks = cols / format.blockWeights;
  int64_t units = layout.unitsPerRow(cols);
  for (int64_t unit = 0; unit < units; ++unit, out += layout.unitBytes) {
    std::memset(out, 0, layout.headBytes);
    for (int64_t part = 0; part < map.blocksInUnit; ++part) {
      int64_t block = unit * map.blocksInUnit + part;
      int64_t firstWeight = part * format.blockWeights;
      for (int64_t row = 0; row < kRows; ++row) {
        RawBlock read, *raw = &empty;
        if (row < rowCount && block < blocks) {
          formats::readRaw(format, rows + row * rowBytes + block * format.blockBytes, read);
          raw = &read;
        }
        packScale(layout, raw->scale, row, part, out);
        if (format.hasMin)
          store(out + layout.minOffset(firstWeight) + 2 * row, raw->min);
        packSubs(layout, *raw, row, out);
        packCodes(map.vectors[part], raw->code, row, out);
      }
    }
  }
}

void izhc::unpackTile(const PackedLayout &layout, const uint8_t *tile, int64_t rowCount,
                      int64_t rowBytes, int64_t cols, uint8_t *rows) {
  const FormatSpec &format = *layout.format;
  if (format.kind != ElementKind::Quantized) {
    if (format.blockBytes == 4)
      unpackFloats<uint32_t>(tile, rowCount, rowBytes, cols, rows);
    else
      unpackFloats<uint16_t>(tile, rowCount, rowBytes, cols, rows);
    return;
  }

  if (format.grid)
    return unpackWords(layout, tile, rowCount, rowBytes, cols, rows);

  TileMap map(layout);
  int64_t blocks = cols / format.blockWeights;
  for (int64_t block = 0; block < blocks; ++block) {
    const uint8_t *unit = tile + block / map.blocksInUnit * layout.unitBytes;
    int64_t part = block % map.blocksInUnit;
    int64_t firstWeight = part * format.blockWeights;
    for (int64_t row = 0; row < rowCount; ++row) {
      RawBlock raw = {};
      raw.scale = unpackScale(layout, unit, row, part);
      if (format.hasMin)
        raw.min = load<uint16_t>(unit + layout.minOffset(firstWeight) + 2 * row);
      unpackSubs(layout, unit, row, raw);
      unpackCodes(map.vectors[part], unit, row, raw.code);
      formats::writeRaw(format, raw, rows + row * rowBytes + block * format.blockBytes);
    }
  }
}
