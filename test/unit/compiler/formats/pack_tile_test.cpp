// Packing is lossless, and packed values lie where PackedLayout.h says: the
// reader below follows its text, value by value.

#include "test/unit/compiler/formats/random_blocks.h"

#include "compiler/formats/PackedLayout.h"

#include <gtest/gtest.h>

using namespace izhc;
using namespace izhc::test;

class PackTileTest : public testing::TestWithParam<const FormatSpec *> {
protected:
  const FormatSpec &format = *GetParam();
  PackedLayout layout{format};

  int64_t rowBytes(int64_t cols) const { return cols / format.blockWeights * format.blockBytes; }
  std::vector<uint8_t> rows(int64_t count, int64_t cols) const {
    return randomBlocks(format, count * cols / format.blockWeights, 7);
  }
  // Into memory that held something else.
  std::vector<uint8_t> pack(const std::vector<uint8_t> &rows, int64_t count, int64_t cols) const {
    std::vector<uint8_t> tile(layout.tileBytes(cols), 0xcd);
    packTile(layout, rows.data(), count, rowBytes(cols), cols, tile.data());
    return tile;
  }
};

TEST_P(PackTileTest, UnpackRestoresAllRowsOfAnyTile) {
  for (int64_t blocks : {1, 2, 3, 5, 8})
    for (int64_t count = 1; count <= 16; ++count) {
      int64_t cols = blocks * format.blockWeights;
      std::vector<uint8_t> source = rows(count, cols);
      std::vector<uint8_t> tile = pack(source, count, cols);
      std::vector<uint8_t> again(source.size(), 0xaa);
      unpackTile(layout, tile.data(), count, rowBytes(cols), cols, again.data());
      ASSERT_EQ(again, source) << count << " rows, " << cols << " columns";
    }
}

static uint16_t half(const uint8_t *tile, int64_t offset, int64_t row) {
  return static_cast<uint16_t>(tile[offset + 2 * row] | tile[offset + 2 * row + 1] << 8);
}

// The bits of the scale of (row, k) in its unit.
static uint16_t scaleBits(const PackedLayout &layout, const uint8_t *unit, int64_t row, int64_t k) {
  switch (layout.format->scaleKind) {
  case ScaleKind::Half:
    return half(unit, layout.scaleOffset(k), row);
  case ScaleKind::PowerOfTwo:
    return unit[2 * row + k / 32];
  case ScaleKind::PerSub:
    break;
  }
  return 0;
}

// The code of (row, k): bits [w*g, w*g + w) of byte 4 * row + c of the vector,
// with k = start of the vector + 4g + c.
static uint32_t packedCode(const PackedLayout &layout, const uint8_t *unit, int64_t row,
                           int64_t k) {
  uint32_t code = 0;
  for (size_t plane = 0; plane < layout.planes.size(); ++plane) {
    uint32_t width = layout.planes[plane].width;
    int64_t inVector = k % (32 / width);
    uint8_t byte = unit[layout.planeOffset(plane, k) + 4 * row + inVector % 4];
    uint32_t bits = byte >> width * (inVector / 4) & ((1u << width) - 1);
    code |= bits << layout.planes[plane].shift;
  }
  return code;
}

// Sub-block values of a row, as the comment of PackedLayout.h spells them.
static void packedSubs(const PackedLayout &layout, const uint8_t *unit, int64_t row, uint32_t *sub,
                       uint32_t *subMin) {
  for (int q = 0; q < layout.unitWeights / 64; ++q)
    for (int j = 0; j < 4; ++j) {
      if (layout.subs == SubScales::SixBitEight) {
        const uint8_t *low = unit + layout.subOffset(0) + 4 * row;
        int i = 2 * q + j % 2;
        sub[i] = (low[i / 2] >> 4 * (i % 2) & 15) |
                 (half(unit, layout.highOffset(), row) >> 2 * i & 3) << 4;
        continue;
      }
      if (layout.subs == SubScales::InChunk) {
        uint8_t both = unit[layout.subOffset(q) + 4 * row + j];
        sub[4 * q + j] = layout.format->hasMin ? both & 15 : both;
        subMin[4 * q + j] = both >> 4;
        continue;
      }
      const uint8_t *pa = unit + layout.subOffset(0) + 4 * row + j;
      uint32_t low = q == 0 ? pa[0] & 15 : q == 1 ? pa[0] >> 4 : q == 2 ? pa[64] & 15 : pa[64] >> 4;
      uint32_t value = low | (pa[128] >> 2 * q & 3) << 4;
      if (!layout.format->hasMin)
        sub[4 * q + j] = value;
      else
        (j < 2 ? sub : subMin)[2 * q + j % 2] = value;
    }
}

// Blocks of grids: d, then everything else in words of four bytes; or all of it.
static void checkWords(const PackedLayout &layout, const uint8_t *block, const uint8_t *unit,
                       int64_t row) {
  const FormatSpec &format = *layout.format;
  std::vector<uint8_t> rest(block, block + format.blockBytes);
  for (const BitField &field : format.fields)
    if (field.role == FieldRole::Scale && field.width == 16) {
      uint32_t at = field.firstBit / 8;
      ASSERT_EQ(std::memcmp(unit + 2 * row, block + at, 2), 0);
      rest.erase(rest.begin() + at, rest.begin() + at + 2);
      unit += 32;
    }
  for (size_t word = 0; word < rest.size() / 4; ++word)
    ASSERT_EQ(std::memcmp(unit + 64 * word + 4 * row, &rest[4 * word], 4), 0) << word;
}

TEST_P(PackTileTest, ValuesLieWhereTheHeaderSays) {
  constexpr int64_t kRows = 13;
  int64_t blocks = 5, cols = blocks * format.blockWeights;
  std::vector<uint8_t> source = rows(kRows, cols), tile = pack(source, kRows, cols);
  if (format.kind != ElementKind::Quantized) {
    for (int64_t k = 0; k < cols; ++k)
      for (int64_t row = 0; row < kRows; ++row)
        ASSERT_EQ(std::memcmp(&tile[(k * 16 + row) * format.blockBytes],
                              &source[row * rowBytes(cols) + k * format.blockBytes],
                              format.blockBytes),
                  0);
    return;
  }
  if (format.grid) {
    for (int64_t row = 0; row < kRows; ++row)
      for (int64_t block = 0; block < blocks; ++block)
        checkWords(layout, &source[row * rowBytes(cols) + block * format.blockBytes],
                   &tile[block * layout.unitBytes], row);
    return;
  }
  for (int64_t row = 0; row < kRows; ++row)
    for (int64_t block = 0; block < blocks; ++block) {
      BlockParts parts;
      unpackBlock(format, &source[row * rowBytes(cols) + block * format.blockBytes], parts);
      int64_t first = block * format.blockWeights;
      const uint8_t *unit = tile.data() + first / layout.unitWeights * layout.unitBytes;
      int64_t k0 = first % layout.unitWeights;
      ASSERT_EQ(scaleBits(layout, unit, row, k0), parts.scale);
      if (format.hasMin)
        ASSERT_EQ(half(unit, layout.minOffset(k0), row), parts.min);
      uint32_t codeMask = (1u << format.codeBits) - 1;
      for (uint32_t i = 0; i < format.blockWeights; ++i)
        ASSERT_EQ(packedCode(layout, unit, row, k0 + i),
                  static_cast<uint32_t>(parts.code[i]) & codeMask);
      if (format.subWeights == 0)
        continue;
      uint32_t sub[16] = {}, subMin[16] = {}, subMask = (1u << format.subBits) - 1;
      packedSubs(layout, unit, row, sub, subMin);
      for (uint32_t i = 0; i < format.blockWeights / format.subWeights; ++i) {
        ASSERT_EQ(sub[i], static_cast<uint32_t>(parts.sub[i]) & subMask);
        if (format.hasMin)
          ASSERT_EQ(subMin[i], static_cast<uint32_t>(parts.subMin[i]));
      }
    }
}

// Kernels run over whole tiles and units: what is beyond the matrix must not
// reach a sum.
TEST_P(PackTileTest, WhatLiesBeyondTheMatrixAddsNothing) {
  int64_t blocks = 3, cols = blocks * format.blockWeights;
  constexpr int64_t kRows = 5;
  std::vector<uint8_t> tile = pack(rows(kRows, cols), kRows, cols);
  if (format.kind != ElementKind::Quantized) {
    for (int64_t k = 0; k < cols; ++k)
      for (int64_t row = kRows; row < 16; ++row)
        for (uint32_t byte = 0; byte < format.blockBytes; ++byte)
          ASSERT_EQ(tile[(k * 16 + row) * format.blockBytes + byte], 0);
    return;
  }
  if (format.grid) {
    // Zeros have the scale 0.
    for (int64_t row = kRows; row < 16; ++row)
      for (int64_t at = layout.headBytes; at < layout.tileBytes(cols); at += 4)
        if (at % layout.unitBytes >= layout.headBytes &&
            (at % layout.unitBytes - layout.headBytes) / 4 % 16 == row)
          ASSERT_EQ(tile[at] | tile[at + 1] | tile[at + 2] | tile[at + 3], 0);
    return;
  }
  int64_t allCols = layout.unitsPerRow(cols) * layout.unitWeights;
  for (int64_t row = 0; row < 16; ++row)
    for (int64_t k = 0; k < allCols; ++k) {
      if (row < kRows && k < cols)
        continue;
      const uint8_t *unit = tile.data() + k / layout.unitWeights * layout.unitBytes;
      int64_t inUnit = k % layout.unitWeights;
      ASSERT_EQ(scaleBits(layout, unit, row, inUnit), 0);
      if (format.hasMin)
        ASSERT_EQ(half(unit, layout.minOffset(inUnit), row), 0);
      // With a scale of nothing every entry of a codebook adds nothing.
      ASSERT_EQ(packedCode(layout, unit, row, inUnit),
                format.codebook.empty() ? static_cast<uint32_t>(format.zeroPoint) : 0u);
    }
}

INSTANTIATE_TEST_SUITE_P(AllFormats, PackTileTest,
                         testing::ValuesIn(allFormats().begin(), allFormats().end()),
                         [](const auto &info) { return info.param->name.str(); });
