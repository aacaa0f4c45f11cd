// How publishers of safetensors store weights, in terms of the formats here.
// Readers of folders name types only through this file.

#pragma once

#include "compiler/formats/Format.h"

namespace izhc {

// The format of plain values of this type ("BF16"); nullptr if there is none.
const FormatSpec *formatOfStored(llvm::StringRef type);

// 8-bit floats that come with a factor for each block of a matrix.
bool isScaledFloat(llvm::StringRef type);
// Their value without the factor.
float scaledFloatValue(uint8_t bits);

// 4-bit floats in pairs, with an exponent for each 32 of them: 16 bytes whose
// low halves are the even values. nullptr if there is no such format.
const FormatSpec *formatOfFourBitPairs();
constexpr unsigned kFourBitGroup = 32;
// Writes one block of that format.
void packFourBitPairs(const uint8_t *pairs, uint8_t exponent, uint8_t *block);

} // namespace izhc
