// Types of safetensors files as formats.

#include "compiler/formats/StoredTypes.h"

#include <cmath>

using namespace izhc;

const FormatSpec *izhc::formatOfStored(llvm::StringRef type) {
  static constexpr std::pair<llvm::StringLiteral, llvm::StringLiteral> known[] = {
      {"F32", "f32"}, {"F16", "f16"}, {"BF16", "bf16"}};
  for (auto [stored, format] : known)
    if (stored == type)
      return findFormat(format);
  return nullptr;
}

bool izhc::isScaledFloat(llvm::StringRef type) { return type == "F8_E4M3"; }

// Sign, 4 bits of exponent with bias 7, 3 of mantissa; no infinities, all ones
// are not a number.
float izhc::scaledFloatValue(uint8_t bits) {
  int exponent = bits >> 3 & 15, mantissa = bits & 7;
  float value;
  if (exponent == 15 && mantissa == 7)
    value = NAN;
  else if (exponent == 0)
    value = std::ldexp(float(mantissa), -9);
  else
    value = std::ldexp(float(8 + mantissa), exponent - 10);
  return bits & 0x80 ? -value : value;
}

const FormatSpec *izhc::formatOfFourBitPairs() { return findFormat("mxfp4"); }

// A block holds the exponent, then bytes whose low halves are the first 16
// values and whose high halves the others.
void izhc::packFourBitPairs(const uint8_t *pairs, uint8_t exponent, uint8_t *block) {
  auto code = [&](unsigned i) { return pairs[i / 2] >> (i % 2 * 4) & 15; };
  block[0] = exponent;
  for (unsigned i = 0; i < kFourBitGroup / 2; ++i)
    block[1 + i] = uint8_t(code(i) | code(i + kFourBitGroup / 2) << 4);
}
