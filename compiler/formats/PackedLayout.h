// The packed form of an encoded matrix: one sequential stream for each tile of
// 16 rows, read the same way by every CPU instruction set. Derived from the
// FormatSpec; packer and code generators both take their offsets from here.
//
// Rows lie in vector lanes. A code plane holds `width` bits of each code; its
// 64-byte vector covers 32 / width consecutive k: bits [width*g, width*g+width)
// of byte 4r+c belong to row r, weight k0 + 4g + c. (width 8: 4 k; 4: 8 k;
// 2: 16 k; 1: 32 k.)
//
// A tile is a sequence of units of `unitWeights` k:
//   float formats      unit = 1 k:  16 values, k after k
//   blocks of 32       unit = 64 k: head: d[16], (m[16]) of block 0, then of
//                      block 1 (float16 each), padded to 64 bytes; then the
//                      code vectors of block 0 and of block 1. Scales of a byte:
//                      the head is 32 bytes, byte 2r of block 0, 2r+1 of block 1
//   blocks of 64       unit = 64 k: a vector S of scales (a byte for each 16 k),
//                      then the code vectors
//   blocks of 256      unit = 256 k: head: d[16], dmin[16] (or 32 bytes of
//                      zeros, or with eight sub-scales EH[16]; nothing where
//                      there are neither minima nor sub-scales), then with
//                      sixteen six-bit sub-scales the vectors PA, PB, PH, with
//                      eight the vector EL; then four chunks of 64 k: with
//                      sub-scales of 8 or 4+4 bits a 64-byte vector S, then
//                      the code vectors
//   grids              unit = 256 k: head: d[16], or nothing where d is in
//                      pieces; then the rest of the block as words of 32 bits:
//                      dword r of vector i is word i of row r. Readers expand a
//                      unit to code vectors of 8 bits, k ascending, in a scratch
// Order of code vectors: k ascends; where several planes start at the same k,
// the narrower width (which covers more k) comes first; on equal k that is
// high bits before nibbles.
//
// Six-bit sub-scales: four bytes T_q[0..3] for a row and chunk q: with minima
// [sub(2q), sub(2q+1), subMin(2q), subMin(2q+1)], without [sub(4q) .. sub(4q+3)].
//   PA byte 4r+j = low4(T_0[j]) | low4(T_1[j]) << 4, PB the same of T_2, T_3,
//   PH = high2(T_0) | high2(T_1) << 2 | high2(T_2) << 4 | high2(T_3) << 6
// Eight six-bit sub-scales: bits 4i..4i+3 of dword r of EL are bits 0..3 of
// sub(i), bits 2i..2i+1 of the 16-bit word r of EH are bits 4..5.
// Eight bits: S byte 4r+j = sub(4q+j). Four bits: sub(4q+j) | subMin(4q+j) << 4.
//
// Columns beyond the matrix (up to a whole unit) and rows beyond it have
// scale 0 and codes equal to the zero point's (so that they add nothing).

#pragma once

#include "compiler/formats/Format.h"
#include "llvm/ADT/SmallVector.h"

namespace izhc {

struct CodePlane {
  uint32_t width; // bits of a code that it holds
  uint32_t shift; // of these bits within the code
};

enum class SubScales : uint8_t { None, SixBitPacked, SixBitEight, InChunk, InWords };

struct PackedLayout {
  static constexpr int64_t kTileRows = 16;

  const FormatSpec *format = nullptr;
  int64_t unitWeights = 1;
  int64_t unitBytes = 0;
  // What the place of every unit and vector is a multiple of: 64 or 32.
  int64_t align = 64;
  int64_t chunkWeights = 0; // 64 for quantized formats
  int64_t chunkBytes = 0;
  int64_t headBytes = 0;    // before the first chunk
  int64_t codesInChunk = 0; // offset of code vectors in a chunk of 256-blocks
  SubScales subs = SubScales::None;
  llvm::SmallVector<CodePlane, 2> planes;
  // Grids: number of words, and where they begin in the block.
  int64_t words = 0, firstWordByte = 0;

  explicit PackedLayout(const FormatSpec &format);

  int64_t unitsPerRow(int64_t cols) const;
  int64_t tileBytes(int64_t cols) const;
  // Bytes of a whole matrix, all tiles.
  int64_t matrixBytes(int64_t rows, int64_t cols) const;

  // From the start of a unit: the float16 d / m of row 0 (others follow) that
  // cover weight k of the unit.
  int64_t scaleOffset(int64_t k) const;
  int64_t minOffset(int64_t k) const;
  // From the start of a unit: the 64-byte vector of `plane` that holds weight
  // k of the unit (k of any value below unitWeights). Grids: from the start of
  // the expanded codes.
  int64_t planeOffset(size_t plane, int64_t k) const;
  // From the start of a unit: PA or EL, or the S vector of chunk q.
  int64_t subOffset(int64_t chunk) const;
  int64_t wordOffset(int64_t word) const { return headBytes + 64 * word; }
  // Of EH.
  int64_t highOffset() const { return 2 * kTileRows; }

private:
  void layOutSubScales();
  void layOutWords();
};

// Packs rows [16*tile, 16*tile+16) of a matrix in GGUF row order.
// `rows` points to row 16*tile, `rowCount` (1..16) of them exist, `rowBytes`
// apart. Writes tileBytes(cols) bytes to `out`.
void packTile(const PackedLayout &layout, const uint8_t *rows, int64_t rowCount, int64_t rowBytes,
              int64_t cols, uint8_t *out);
// The inverse: writes the GGUF blocks of `rowCount` rows.
void unpackTile(const PackedLayout &layout, const uint8_t *tile, int64_t rowCount, int64_t rowBytes,
                int64_t cols, uint8_t *rows);

// Whether every scale and minimum (for float formats: every weight) of a packed
// tile is a number.
bool tileIsFinite(const PackedLayout &layout, const uint8_t *tile, int64_t cols);

} // namespace izhc
