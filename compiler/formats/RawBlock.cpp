// Blocks read and written by their bit fields. A model has hundreds of
// millions of codes, so the two shapes of fields that hold codes move eight at
// a time in a 64-bit word.

#include "compiler/formats/RawBlock.h"

#include "llvm/Support/Endian.h"

#include <cstring>

using namespace izhc;
using namespace izhc::formats;
using llvm::support::endian::read64le;
using llvm::support::endian::write64le;

static constexpr uint64_t kOnes = 0x0101010101010101;

//===----------------------------------------------------------------------===//
// Fields of any shape
//===----------------------------------------------------------------------===//

// `width` (at most 16) bits from bit `first` on. Touches only their bytes.
static uint32_t readBits(const uint8_t *block, uint32_t first, uint32_t width) {
  uint32_t value = 0, last = (first + width - 1) / 8;
  for (uint32_t byte = first / 8; byte <= last; ++byte)
    value |= static_cast<uint32_t>(block[byte]) << 8 * (byte - first / 8);
  return value >> first % 8 & ((1u << width) - 1);
}

static void orBits(uint8_t *block, uint32_t first, uint32_t width, uint32_t value) {
  uint32_t last = (first + width - 1) / 8;
  value = (value & ((1u << width) - 1)) << first % 8;
  for (uint32_t byte = first / 8; byte <= last; ++byte)
    block[byte] |= static_cast<uint8_t>(value >> 8 * (byte - first / 8));
}

//===----------------------------------------------------------------------===//
// Eight elements at a time
//===----------------------------------------------------------------------===//

// Elements at the same place of successive bytes.
static bool isBytewise(const BitField &field) {
  return field.bitStride == 8 && field.firstBit % 8 + field.width <= 8;
}

// Single bits that fill whole bytes.
static bool isBitRow(const BitField &field) {
  return field.bitStride == 1 && field.width == 1 && field.firstBit % 8 == 0;
}

// Bit i of `bits` as byte i, 0 or 1: a copy in each byte, of which only bit i
// is kept; adding 127 then carries any bit left into the highest.
static uint64_t spreadBits(uint8_t bits) {
  uint64_t kept = bits * kOnes & 0x8040201008040201;
  return (kept + 0x7f * kOnes) >> 7 & kOnes;
}

// The inverse: the product moves byte i to bit 56 + i, and no two meet.
static uint8_t gatherBits(uint64_t bytes) {
  return static_cast<uint8_t>((bytes & kOnes) * 0x0102040810204080 >> 56);
}

static void readField(const BitField &field, const uint8_t *block, uint8_t *elements) {
  elements += field.firstElement;
  const uint8_t *bytes = block + field.firstBit / 8;
  uint32_t i = 0;
  if (isBytewise(field)) {
    // Bits that a shift brings over from the next byte are masked away.
    uint64_t mask = ((1u << field.width) - 1) * kOnes;
    for (uint32_t right = field.firstBit % 8; i + 8 <= field.count; i += 8)
      write64le(elements + i, read64le(elements + i) | (read64le(bytes + i) >> right & mask)
                                                           << field.shift);
  } else if (isBitRow(field)) {
    for (; i + 8 <= field.count; i += 8)
      write64le(elements + i, read64le(elements + i) | spreadBits(bytes[i / 8]) << field.shift);
  }
  for (; i < field.count; ++i)
    elements[i] |= readBits(block, field.firstBit + i * field.bitStride, field.width)
                   << field.shift;
}

static void writeField(const BitField &field, const uint8_t *elements, uint8_t *block) {
  elements += field.firstElement;
  uint8_t *bytes = block + field.firstBit / 8;
  uint32_t i = 0;
  if (isBytewise(field)) {
    uint64_t mask = ((1u << field.width) - 1) * kOnes;
    for (uint32_t left = field.firstBit % 8; i + 8 <= field.count; i += 8)
      write64le(bytes + i, read64le(bytes + i) | (read64le(elements + i) >> field.shift & mask)
                                                     << left);
  } else if (isBitRow(field)) {
    for (; i + 8 <= field.count; i += 8)
      bytes[i / 8] |= gatherBits(read64le(elements + i) >> field.shift);
  }
  for (; i < field.count; ++i)
    orBits(block, field.firstBit + i * field.bitStride, field.width, elements[i] >> field.shift);
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

// Elements of 16 bits are moved one at a time.
template <typename T>
static void readEach(const BitField &field, const uint8_t *block, T *elements) {
  for (uint32_t i = 0; i < field.count; ++i)
    elements[field.firstElement + i] |=
        readBits(block, field.firstBit + i * field.bitStride, field.width) << field.shift;
}

template <typename T>
static void writeEach(const BitField &field, const T *elements, uint8_t *block) {
  for (uint32_t i = 0; i < field.count; ++i)
    orBits(block, field.firstBit + i * field.bitStride, field.width,
           elements[field.firstElement + i] >> field.shift);
}

static void readRole(const BitField &field, const uint8_t *block, RawBlock &raw) {
  switch (field.role) {
  case FieldRole::Code:
    return readField(field, block, raw.code);
  case FieldRole::Sub:
    return readField(field, block, raw.sub);
  case FieldRole::SubMin:
    return readField(field, block, raw.subMin);
  case FieldRole::Scale:
    return readEach(field, block, &raw.scale);
  case FieldRole::Min:
    return readEach(field, block, &raw.min);
  case FieldRole::Index:
    return readEach(field, block, raw.index);
  case FieldRole::Sign:
    return readEach(field, block, raw.sign);
  case FieldRole::Delta:
    return readEach(field, block, raw.delta);
  }
}

static void writeRole(const BitField &field, const RawBlock &raw, uint8_t *block) {
  switch (field.role) {
  case FieldRole::Code:
    return writeField(field, raw.code, block);
  case FieldRole::Sub:
    return writeField(field, raw.sub, block);
  case FieldRole::SubMin:
    return writeField(field, raw.subMin, block);
  case FieldRole::Scale:
    return writeEach(field, &raw.scale, block);
  case FieldRole::Min:
    return writeEach(field, &raw.min, block);
  case FieldRole::Index:
    return writeEach(field, raw.index, block);
  case FieldRole::Sign:
    return writeEach(field, raw.sign, block);
  case FieldRole::Delta:
    return writeEach(field, raw.delta, block);
  }
}

// Calls `body` with each repetition of each field as a field of its own.
template <typename Body> static void forEachField(const FormatSpec &format, Body &&body) {
  for (BitField field : format.fields)
    for (uint32_t i = 0; i < field.repeats; ++i) {
      body(field);
      field.firstBit += field.repeatStride;
      field.firstElement += field.count;
    }
}

void formats::readRaw(const FormatSpec &format, const uint8_t *block, RawBlock &raw) {
  std::memset(raw.code, 0, format.blockWeights);
  std::memset(raw.sub, 0, sizeof(raw.sub));
  std::memset(raw.subMin, 0, sizeof(raw.subMin));
  raw.scale = raw.min = 0;
  if (format.grid) {
    std::memset(raw.index, 0, sizeof(raw.index));
    std::memset(raw.sign, 0, sizeof(raw.sign));
    std::memset(raw.delta, 0, sizeof(raw.delta));
  }
  forEachField(format, [&](const BitField &field) { readRole(field, block, raw); });
}

void formats::writeRaw(const FormatSpec &format, const RawBlock &raw, uint8_t *block) {
  std::memset(block, 0, format.blockBytes);
  forEachField(format, [&](const BitField &field) { writeRole(field, raw, block); });
}

static void expandTernary(const RawBlock &raw, uint8_t *codes) {
  auto weights = [&](int first, int count, int places) {
    for (int i = 0; i < count; ++i) {
      uint8_t rest = static_cast<uint8_t>(raw.index[first + i]);
      for (int place = 0; place < places; ++place, rest = static_cast<uint8_t>(rest * 3))
        codes[place * count + i] = static_cast<uint8_t>(rest * 3 >> 8);
    }
    codes += places * count;
  };
  weights(0, 32, 5);
  weights(32, 16, 5);
  weights(48, 4, 4);
}

void formats::expandGrid(const FormatSpec &format, const RawBlock &raw, uint8_t *codes) {
  const Grid &grid = *format.grid;
  if (grid.isTernary())
    return expandTernary(raw, codes);
  uint32_t bits = 16 / grid.groupWeights;
  for (uint32_t i = 0; i < format.blockWeights; ++i) {
    uint32_t entry = grid.entries[raw.index[i / grid.groupWeights]];
    int32_t value = grid.values[entry >> bits * (i % grid.groupWeights) & ((1u << bits) - 1)];
    value *= grid.multiplier;
    uint8_t signs = raw.sign[i / 8];
    if (grid.signBits == 7)
      signs |= (__builtin_popcount(signs) & 1) << 7;
    if (signs >> i % 8 & 1)
      value = -value;
    if (grid.deltaWeights)
      value += raw.delta[i / grid.deltaWeights] ? -1 : 1;
    codes[i] = static_cast<uint8_t>(value + format.zeroPoint);
  }
}
