// Offsets of the packed form, derived from the format's data alone.

#include "compiler/formats/PackedLayout.h"

#include <cassert>

using namespace izhc;

static constexpr int64_t kVectorBytes = 64;

// Consecutive weights of a row that one vector of a plane covers.
static int64_t covered(const CodePlane &plane) { return 32 / plane.width; }

// Splits a code into planes whose widths divide a byte, the narrower first:
// it holds the upper bits.
static llvm::SmallVector<CodePlane, 2> planesOf(uint32_t bits) {
  switch (bits) {
  case 1:
  case 2:
  case 4:
  case 8:
    return {{bits, 0}};
  case 3:
    return {{1, 2}, {2, 0}};
  case 5:
    return {{1, 4}, {4, 0}};
  case 6:
    return {{2, 4}, {4, 0}};
  case 7:
    return {{1, 6}, {2, 4}, {4, 0}};
  }
  assert(false && "codes have 1 to 8 bits");
  return {};
}

PackedLayout::PackedLayout(const FormatSpec &format) : format(&format) {
  if (format.kind != ElementKind::Quantized) {
    unitBytes = kTileRows * format.blockBytes;
    return;
  }
  if (format.grid) {
    layOutWords();
    return;
  }
  planes = planesOf(format.codeBits);
  chunkWeights = 64;
  chunkBytes = kTileRows * chunkWeights * format.codeBits / 8;
  int64_t scaleBytes = kTileRows * 2;
  unitWeights = std::max<int64_t>(format.blockWeights, 64);
  if (format.blockWeights == 32) {
    assert(format.subWeights == 0 && "blocks of 32 have no sub-blocks");
    headBytes = format.scaleKind == ScaleKind::PowerOfTwo ? scaleBytes : 2 * scaleBytes;
    headBytes *= format.hasMin ? 2 : 1;
  } else if (format.scaleKind == ScaleKind::PerSub) {
    assert(format.blockWeights == 64 && format.subWeights == 16 && "four scales a block");
    subs = SubScales::InChunk;
  } else {
    assert(format.blockWeights == 256 && "blocks have 32, 64 or 256 weights");
    layOutSubScales();
  }
  if (subs == SubScales::InChunk) {
    codesInChunk = kVectorBytes;
    chunkBytes += kVectorBytes;
  }
  unitBytes = headBytes + unitWeights / chunkWeights * chunkBytes;
  align = unitBytes % kVectorBytes || headBytes % kVectorBytes ? 32 : 64;
}

// The block without its scale as words; codes only where they are expanded.
void PackedLayout::layOutWords() {
  assert(format->blockWeights == 256 && "grids have blocks of 256 weights");
  planes = {{8, 0}};
  unitWeights = 256;
  chunkWeights = 64;
  chunkBytes = kTileRows * chunkWeights;
  subs = format->subWeights ? SubScales::InWords : SubScales::None;
  for (const BitField &field : format->fields)
    if (field.role == FieldRole::Scale && field.width == 16) {
      headBytes = 2 * kTileRows;
      firstWordByte = field.firstBit == 0 ? 2 : 0;
    }
  words = (format->blockBytes - headBytes / kTileRows) / 4;
  unitBytes = headBytes + words * kVectorBytes;
  align = headBytes ? 32 : 64;
}

// The head of a block of 256 and where its sub-scales lie.
void PackedLayout::layOutSubScales() {
  int64_t scaleBytes = kTileRows * 2;
  headBytes = format->hasMin || format->subBits ? 2 * scaleBytes : scaleBytes;
  if (format->subBits == 0)
    return;
  if (format->subBits == 6 && format->subWeights == 32 && !format->hasMin) {
    subs = SubScales::SixBitEight;
    headBytes += kVectorBytes;
  } else if (format->subBits == 6) {
    assert(format->subWeights == (format->hasMin ? 32 : 16) && "16 values a block");
    subs = SubScales::SixBitPacked;
    headBytes += 3 * kVectorBytes;
  } else {
    assert(format->subWeights == 16 && format->subBits == (format->hasMin ? 4 : 8) &&
           "four bytes a row and chunk");
    subs = SubScales::InChunk;
  }
}

int64_t PackedLayout::unitsPerRow(int64_t cols) const {
  return (cols + unitWeights - 1) / unitWeights;
}

int64_t PackedLayout::tileBytes(int64_t cols) const { return unitsPerRow(cols) * unitBytes; }

int64_t PackedLayout::matrixBytes(int64_t rows, int64_t cols) const {
  return (rows + kTileRows - 1) / kTileRows * tileBytes(cols);
}

int64_t PackedLayout::scaleOffset(int64_t k) const {
  if (format->blockWeights != 32 || format->scaleKind == ScaleKind::PowerOfTwo)
    return 0;
  return k / 32 * (headBytes / 2);
}

int64_t PackedLayout::minOffset(int64_t k) const { return scaleOffset(k) + kTileRows * 2; }

int64_t PackedLayout::planeOffset(size_t plane, int64_t k) const {
  int64_t inChunk = k % chunkWeights;
  int64_t start = inChunk - inChunk % covered(planes[plane]);
  // Vectors that come before: those that start at a lower k, and on equal k
  // those of earlier (narrower) planes.
  int64_t before = 0;
  for (size_t other = 0; other < planes.size(); ++other) {
    int64_t step = covered(planes[other]);
    before += (start + step - 1) / step;
    if (other < plane && start % step == 0)
      ++before;
  }
  int64_t first = format->grid ? 0 : headBytes;
  return first + k / chunkWeights * chunkBytes + codesInChunk + before * kVectorBytes;
}

int64_t PackedLayout::subOffset(int64_t chunk) const {
  if (subs != SubScales::InChunk)
    return 2 * kTileRows * 2;
  return headBytes + chunk * chunkBytes;
}
