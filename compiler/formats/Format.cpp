// The registry of formats, half-precision conversion, and blocks as integers.

#include "compiler/formats/Format.h"

#include "compiler/formats/RawBlock.h"

#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>

using namespace izhc;
using namespace izhc::formats;

// Declares the factories, which the files named by the table define.
namespace izhc::formats {
#define IZH_ENTRY(name) const FormatSpec &name();
#include "compiler/formats/Registry.inc"
#undef IZH_ENTRY
} // namespace izhc::formats

llvm::ArrayRef<const FormatSpec *> izhc::allFormats() {
  static const FormatSpec *const table[] = {
#define IZH_ENTRY(name) &formats::name(),
#include "compiler/formats/Registry.inc"
#undef IZH_ENTRY
  };
  return table;
}

const FormatSpec *izhc::findFormat(llvm::StringRef name) {
  for (const FormatSpec *format : allFormats())
    if (format->name == name)
      return format;
  return nullptr;
}

const FormatSpec *izhc::findFormatByGgufType(uint32_t type) {
  for (const FormatSpec *format : allFormats())
    if (format->ggufType == type)
      return format;
  return nullptr;
}

int32_t izhc::mostCode(const FormatSpec &format) {
  // Codes of grids are as far above the zero point as below it.
  if (format.grid)
    return 2 * format.zeroPoint;
  if (format.codebook.empty())
    return format.signedCodes ? 1 << (format.codeBits - 1) : (1 << format.codeBits) - 1;
  int32_t most = 0;
  for (int8_t code : format.codebook)
    most = std::max(most, std::abs(int32_t(code)));
  return most;
}

float izhc::scaleValue(const FormatSpec &format, uint16_t bits) {
  switch (format.scaleKind) {
  case ScaleKind::Half:
    break;
  case ScaleKind::PowerOfTwo:
    return bits == 255 ? NAN : std::ldexp(1.0f, int(bits) - 127);
  case ScaleKind::PerSub:
    // As a half with the same exponent and fraction, whose bias is 15.
    return (bits & 127) == 127 ? NAN : halfToFloat((bits & 127) << 7) * 256;
  }
  return halfToFloat(bits);
}

//===----------------------------------------------------------------------===//
// Half precision
//===----------------------------------------------------------------------===//

float izhc::halfToFloat(uint16_t bits) {
  uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  uint32_t exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
  if (exponent == 31)
    return std::bit_cast<float>(sign | 0x7f800000 | fraction << 13);
  if (exponent != 0)
    return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  // Subnormal halves are exact multiples of 2^-24.
  float value = static_cast<float>(fraction) * 0x1p-24f;
  return sign ? -value : value;
}

uint16_t izhc::floatToHalf(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint16_t sign = bits >> 16 & 0x8000;
  uint32_t rest = bits & 0x7fffffff;
  if (rest > 0x7f800000)
    return sign | 0x7e00;
  // From halfway between the largest half and 2^16 on.
  if (rest >= 0x477ff000)
    return sign | 0x7c00;
  // Below the least normal half: count in steps of 2^-24. Adding 2^-1 to the
  // value leaves exactly these steps in the lowest bits, rounded to even.
  if (rest < 0x38800000) {
    float shifted = std::bit_cast<float>(rest) + 0.5f;
    return sign | static_cast<uint16_t>(std::bit_cast<uint32_t>(shifted) - 0x3f000000);
  }
  uint32_t odd = rest >> 13 & 1;
  return sign | static_cast<uint16_t>((rest - (112u << 23) + 0xfff + odd) >> 13);
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

void izhc::unpackBlock(const FormatSpec &format, const uint8_t *block, BlockParts &parts) {
  assert(format.kind == ElementKind::Quantized && "float formats have no parts");
  RawBlock raw;
  readRaw(format, block, raw);
  if (format.grid) {
    expandGrid(format, raw, raw.code);
    std::copy(std::begin(raw.index), std::end(raw.index), parts.index);
    std::copy(std::begin(raw.sign), std::end(raw.sign), parts.sign);
    std::copy(std::begin(raw.delta), std::end(raw.delta), parts.delta);
  }
  for (uint32_t i = 0; i < format.blockWeights; ++i)
    parts.code[i] = format.signedCodes && format.codebook.empty() ? static_cast<int8_t>(raw.code[i])
                                                                  : raw.code[i];
  for (uint32_t i = 0; i < 16; ++i) {
    parts.sub[i] = format.signedSub ? static_cast<int8_t>(raw.sub[i]) : raw.sub[i];
    parts.subMin[i] = raw.subMin[i];
  }
  // Formats without sub-blocks are those whose sub-blocks have scale 1.
  if (format.subWeights == 0)
    parts.sub[0] = parts.subMin[0] = 1;
  parts.scale = raw.scale;
  parts.min = raw.min;
}

void izhc::repackBlock(const FormatSpec &format, const BlockParts &parts, uint8_t *block) {
  assert(format.kind == ElementKind::Quantized && "float formats have no parts");
  RawBlock raw;
  if (format.grid) {
    std::copy(std::begin(parts.index), std::end(parts.index), raw.index);
    std::copy(std::begin(parts.sign), std::end(parts.sign), raw.sign);
    std::copy(std::begin(parts.delta), std::end(parts.delta), raw.delta);
  }
  for (uint32_t i = 0; i < format.blockWeights; ++i)
    raw.code[i] = static_cast<uint8_t>(parts.code[i]);
  for (uint32_t i = 0; i < 16; ++i) {
    raw.sub[i] = static_cast<uint8_t>(parts.sub[i]);
    raw.subMin[i] = static_cast<uint8_t>(parts.subMin[i]);
  }
  raw.scale = parts.scale;
  raw.min = parts.min;
  writeRaw(format, raw, block);
}
