// Arithmetic on the bits of registers.

#pragma once

#include <bit>
#include <cstdint>

#include "test/ptx/program.h"

namespace izh::ptx {

inline uint64_t mask_of(unsigned bytes) {
  return bytes == 8 ? ~uint64_t{0} : (uint64_t{1} << 8 * bytes) - 1;
}

inline int64_t extend(uint64_t value, unsigned bytes) {
  const unsigned unused = 64 - 8 * bytes;
  return static_cast<int64_t>(value << unused) >> unused;
}

inline bool is_float(Type type) {
  return type == Type::F32 || type == Type::F64 || type == Type::F16;
}

inline float single(uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }
inline uint64_t bits_of(float value) { return std::bit_cast<uint32_t>(value); }
inline uint64_t bits_of(double value) { return std::bit_cast<uint64_t>(value); }

double number_of(uint64_t bits, Type type);

// Results of one instruction; bits beyond its type are undefined.
uint64_t convert(const Instruction &one, uint64_t bits);
template <typename Float>
uint64_t float_operation(const Instruction &one, Float x, Float y, Float z);
extern template uint64_t float_operation(const Instruction &one, float x, float y, float z);
extern template uint64_t float_operation(const Instruction &one, double x, double y, double z);
uint64_t integer_operation(const Instruction &one, uint64_t x, uint64_t y, uint64_t z);
bool compare(const Instruction &one, uint64_t x, uint64_t y);
// Of two numbers, with twice as many bits, plus `more`.
uint64_t multiply_wide(const Instruction &one, uint64_t x, uint64_t y, uint64_t more);
// Of four bytes each, added to `acc`.
uint64_t dot4(const Instruction &one, uint64_t x, uint64_t y, uint64_t acc);
uint64_t permute(uint64_t low, uint64_t high, uint64_t selector);
uint64_t bit_field(const Instruction &one, uint64_t x, uint64_t from, uint64_t count);
uint64_t bit_insert(uint64_t piece, uint64_t into, uint64_t at, uint64_t count);
uint64_t look_up3(uint64_t a, uint64_t b, uint64_t c, uint64_t table);

} // namespace izh::ptx
