// Random blocks of any format for the tests of this folder.

#pragma once

#include "compiler/formats/Format.h"

#include <cstring>
#include <random>
#include <vector>

namespace izhc::test {

// `count` blocks of random bits; 16-bit scales and minima are made finite, as
// NaNs compare unequal. Float formats: random finite values.
inline std::vector<uint8_t> randomBlocks(const FormatSpec &format, size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> bytes(count * format.blockBytes);
  for (uint8_t &byte : bytes)
    byte = static_cast<uint8_t>(random());
  auto makeFinite = [&](uint8_t *upper) { *upper = (*upper & 0x83) | 0x28; };
  for (size_t i = 0; i < count; ++i) {
    uint8_t *block = bytes.data() + i * format.blockBytes;
    if (format.kind != ElementKind::Quantized)
      makeFinite(block + format.blockBytes - 1);
    for (const BitField &field : format.fields) {
      bool isHalf = field.role == FieldRole::Scale || field.role == FieldRole::Min;
      if (format.scaleKind == ScaleKind::Half && isHalf && field.width == 16)
        makeFinite(block + field.firstBit / 8 + 1);
      // The last four bits of one in pieces: exponents of 8 to 11.
      else if (format.scaleKind == ScaleKind::Half && isHalf && field.shift == 12)
        block[field.firstBit / 8] = (block[field.firstBit / 8] & 0x8f) | 0x20;
      if (format.scaleKind == ScaleKind::PowerOfTwo && field.role == FieldRole::Scale)
        block[field.firstBit / 8] &= 0xbf;
      if (format.scaleKind == ScaleKind::PerSub && field.role == FieldRole::Sub)
        for (uint32_t sub = 0; sub < field.count; ++sub)
          block[field.firstBit / 8 + sub] &= 0xbf;
    }
  }
  return bytes;
}

// The formats with codes, in registry order.
inline std::vector<const FormatSpec *> quantizedFormats() {
  std::vector<const FormatSpec *> list;
  for (const FormatSpec *format : allFormats())
    if (format->kind == ElementKind::Quantized)
      list.push_back(format);
  return list;
}

} // namespace izhc::test
