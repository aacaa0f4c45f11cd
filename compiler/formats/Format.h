// What a weight format is, as data: the GGUF block as bit fields, from which
// follow the packed layout, the lossless packing, the generic unpacking code
// of every target and the conformance cases. One file of this folder defines
// one format; nothing else names it.

#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>

namespace izhc {

// A quantized weight is
//   factor * scale * sub * (code - zeroPoint)  -/+ min * subMin
// where `scale` and `min` are one number a block, and `sub` and `subMin` are
// small integers a sub-block (1 if the format has no sub-blocks). With a
// codebook, `code` is what it holds at the number that is stored.
enum class FieldRole : uint8_t { Code, Scale, Min, Sub, SubMin, Index, Sign, Delta };

// `count` values of `width` bits: value i lies at bit
// firstBit + i * bitStride of the block (bit 0 = lowest bit of byte 0) and
// contributes its bits, shifted left by `shift`, to element
// firstElement + i of its role. All of this `repeats` times, each time
// repeatStride bits and `count` elements further on.
struct BitField {
  FieldRole role;
  uint32_t firstBit, width, count, bitStride, firstElement, shift;
  uint32_t repeats = 1, repeatStride = 0;
};

enum class ElementKind : uint8_t { Quantized, F32, F16, BF16 };

// Weights that indices choose in groups, in blocks of 256. An element of role
// Index stands for `groupWeights` weights: entry e holds, in 16 / groupWeights
// bits each, which of `values` they have. The code of a weight, less the zero
// point, is its value times `multiplier`, then negative where its Sign bit (of
// an element for 8 weights) is set, then plus 1, or minus 1 where its Delta bit
// is set. groupWeights 5: an index is a byte with five weights of three values,
// as tq1_0.cpp describes.
struct Grid {
  uint32_t groupWeights;
  llvm::ArrayRef<uint16_t> entries = {};
  llvm::ArrayRef<int8_t> values = {};
  uint32_t signBits = 0; // of 8 weights: 0, 8, or 7 and the number of ones is even
  int32_t multiplier = 1;
  uint32_t deltaWeights = 0; // that share a Delta bit; 0: none

  bool isTernary() const { return groupWeights == 5; }
};

enum class ScaleKind : uint8_t {
  Half,       // float16
  PowerOfTwo, // 2^(byte - 127); 255 is no number
  // None for the block: each Sub is itself a float of 4 exponent and 3
  // fraction bits (bias 7, no sign); 127 is no number.
  PerSub,
};

struct FormatSpec {
  llvm::StringRef name; // as users and GGUF files spell it, lower case
  uint32_t ggufType;    // the type number in GGUF files
  ElementKind kind = ElementKind::Quantized;
  uint32_t blockWeights = 1; // 32, 64 (PerSub) or 256; 1 for float kinds
  uint32_t blockBytes = 0;
  llvm::ArrayRef<BitField> fields = {};
  uint32_t codeBits = 0; // 1..8
  // What each of 16 four-bit numbers stands for: at least 0, or of any sign
  // with signedCodes. Empty: numbers are the codes.
  llvm::ArrayRef<int8_t> codebook = {};
  // Where weights have no codes of their own; codeBits is 0.
  const Grid *grid = nullptr;
  bool signedCodes = false; // codes are two's complement (8 bits or codebook)
  int32_t zeroPoint = 0;
  ScaleKind scaleKind = ScaleKind::Half;
  float factor = 1;        // a power of two
  uint32_t subWeights = 0; // weights of a sub-block: 0 (none), 16 or 32
  uint32_t subBits = 0;    // width of Sub (and SubMin) values
  bool signedSub = false;  // Sub is two's complement
  int32_t subStep = 1;     // multiplies Sub
  int32_t subZero = 0;     // subtracted from that
  bool hasMin = false;
  bool subtractMin = false; // w = ... - min * subMin instead of + min
  // Writes the blockWeights values of one block, straight from the format's
  // published definition and independent of `fields`.
  void (*decodeBlock)(const uint8_t *block, float *out) = nullptr;
};

// All formats in a fixed order.
llvm::ArrayRef<const FormatSpec *> allFormats();
// nullptr if there is none.
const FormatSpec *findFormat(llvm::StringRef name);
const FormatSpec *findFormatByGgufType(uint32_t type);
// How GGUF calls a type, whether or not there is a format for it here; empty
// for numbers that mean nothing.
llvm::StringRef ggufTypeName(uint32_t type);

// The code that `stored` (an element of role Code, sign-extended where it is
// signed) stands for.
inline int32_t codeOf(const FormatSpec &format, int32_t stored) {
  return format.codebook.empty() ? stored : format.codebook[stored];
}
// The largest code, of signed ones the largest magnitude.
int32_t mostCode(const FormatSpec &format);
// The value of the bits of a scale (role Scale; with PerSub, Sub), not a number
// where the bits say so.
float scaleValue(const FormatSpec &format, uint16_t bits);

// The parts of one block as integers as they are stored, sign-extended where
// the format says so; zeroPoint and subZero are not subtracted. Only the first blockWeights codes
// are set. Without sub-blocks sub[0] and subMin[0] are 1.
struct BlockParts {
  int32_t code[256]; // with a grid: what it makes of the next three
  uint16_t index[64];
  uint8_t sign[32];
  uint8_t delta[32];
  int32_t sub[16];
  int32_t subMin[16];
  uint16_t scale; // its bits
  uint16_t min;
};
// Reads and writes a block of a Quantized format by its bit fields; inverse of
// each other.
void unpackBlock(const FormatSpec &format, const uint8_t *block, BlockParts &parts);
void repackBlock(const FormatSpec &format, const BlockParts &parts, uint8_t *block);

// The values of `blocks` blocks that follow each other, which decodeBlock gives
// one by one: a model holds its float weights by the hundred million.
void decodeBlocks(const FormatSpec &format, const uint8_t *bytes, int64_t blocks, float *out);

float halfToFloat(uint16_t bits);
uint16_t floatToHalf(float value); // round to nearest even

} // namespace izhc
