#include "test/ptx/values.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace izh::ptx {
static float half_to_float(uint16_t bits) {
  const uint32_t sign = uint32_t{bits & 0x8000u} << 16, exponent = (bits >> 10) & 31;
  const uint32_t fraction = bits & 1023;
  if (exponent == 0) {
    const float value = static_cast<float>(fraction) * 0x1p-24f;
    return sign ? -value : value;
  }
  const uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

static uint16_t float_to_half(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), sign = (bits >> 16) & 0x8000;
  if (std::isnan(value))
    return static_cast<uint16_t>(sign | 0x7e00);
  const float magnitude = std::fabs(value);
  if (magnitude >= 65520.0f)
    return static_cast<uint16_t>(sign | 0x7c00);
  // Adding a number whose last place is float16's rounds to nearest even.
  int exponent;
  std::frexp(magnitude, &exponent);
  const int last = std::max(exponent - 11, -24);
  const double steps = std::nearbyint(std::ldexp(static_cast<double>(magnitude), -last));
  const double rounded = std::ldexp(steps, last);
  if (rounded < 0x1p-14)
    return static_cast<uint16_t>(sign | static_cast<uint32_t>(rounded * 0x1p24));
  std::frexp(rounded, &exponent);
  const uint32_t fraction = static_cast<uint32_t>(std::ldexp(rounded, 11 - exponent)) & 1023;
  return static_cast<uint16_t>(sign | static_cast<uint32_t>(exponent + 14) << 10 | fraction);
}

double number_of(uint64_t bits, Type type) {
  switch (type) {
  case Type::F64:
    return std::bit_cast<double>(bits);
  case Type::F32:
    return std::bit_cast<float>(static_cast<uint32_t>(bits));
  case Type::F16:
    return half_to_float(static_cast<uint16_t>(bits));
  default:
    break;
  }
  const unsigned bytes = size_of(type);
  return is_signed(type) ? static_cast<double>(extend(bits, bytes))
                         : static_cast<double>(bits & mask_of(bytes));
}

template <typename Float> static bool compare_floats(Test test, Float x, Float y) {
  const bool unordered = std::isnan(x) || std::isnan(y);
  switch (test) {
  case Test::Eq:
    return x == y;
  case Test::Ne:
    return !unordered && x != y;
  case Test::Lt:
    return x < y;
  case Test::Le:
    return x <= y;
  case Test::Gt:
    return x > y;
  case Test::Ge:
    return x >= y;
  case Test::Ltu:
    return unordered || x < y;
  case Test::Leu:
    return unordered || x <= y;
  case Test::Gtu:
    return unordered || x > y;
  case Test::Geu:
    return unordered || x >= y;
  case Test::Equ:
    return unordered || x == y;
  case Test::Neu:
    return unordered || x != y;
  case Test::Num:
    return !unordered;
  case Test::Nan:
    return unordered;
  }
  return false;
}

template <typename Integer> static bool compare_integers(Test test, Integer x, Integer y) {
  switch (test) {
  case Test::Eq:
    return x == y;
  case Test::Ne:
    return x != y;
  case Test::Lt:
    return x < y;
  case Test::Le:
    return x <= y;
  case Test::Gt:
    return x > y;
  default:
    return x >= y;
  }
}

uint64_t convert(const Instruction &one, uint64_t bits) {
  if (!is_float(one.from) && !is_float(one.type)) {
    const unsigned from = size_of(one.from);
    const uint64_t wide =
        is_signed(one.from) ? static_cast<uint64_t>(extend(bits, from)) : bits & mask_of(from);
    // Results narrower than a register are extended by their own sign.
    return is_signed(one.type) ? static_cast<uint64_t>(extend(wide, size_of(one.type)))
                               : wide & mask_of(size_of(one.type));
  }
  double value = number_of(bits, one.from);
  switch (one.rounding) {
  case Rounding::NearestInt:
    value = std::nearbyint(value);
    break;
  case Rounding::ZeroInt:
    value = std::trunc(value);
    break;
  case Rounding::MinusInt:
    value = std::floor(value);
    break;
  case Rounding::PlusInt:
    value = std::ceil(value);
    break;
  case Rounding::None:
    break;
  }
  switch (one.type) {
  case Type::F64:
    return bits_of(value);
  case Type::F32:
    // From 64-bit integers directly: twice rounded is not the same.
    if (one.from == Type::S64)
      return bits_of(static_cast<float>(static_cast<int64_t>(bits)));
    if (one.from == Type::U64)
      return bits_of(static_cast<float>(bits));
    return bits_of(static_cast<float>(value));
  case Type::F16:
    return float_to_half(static_cast<float>(value));
  default:
    break;
  }
  // Integers saturate; what is no number gives 0.
  const unsigned width = 8 * size_of(one.type);
  if (std::isnan(value))
    return 0;
  if (is_signed(one.type)) {
    const double limit = std::ldexp(1.0, static_cast<int>(width) - 1);
    if (value >= limit)
      return (uint64_t{1} << (width - 1)) - 1;
    if (value < -limit)
      return uint64_t{1} << (width - 1);
    return static_cast<uint64_t>(static_cast<int64_t>(value)) & mask_of(width / 8);
  }
  if (value <= 0)
    return 0;
  if (value >= std::ldexp(1.0, static_cast<int>(width)))
    return mask_of(width / 8);
  return static_cast<uint64_t>(value);
}

template <typename Float>
uint64_t float_operation(const Instruction &one, Float x, Float y, Float z) {
  switch (one.op) {
  case Op::Add:
    return bits_of(x + y);
  case Op::Sub:
    return bits_of(x - y);
  case Op::Mul:
    return bits_of(x * y);
  case Op::Div:
    return bits_of(x / y);
  case Op::Fma:
    return bits_of(std::fma(x, y, z));
  case Op::Neg:
    return bits_of(-x);
  case Op::Abs:
    return bits_of(std::fabs(x));
  case Op::Min:
    return bits_of(std::fmin(x, y));
  case Op::Max:
    return bits_of(std::fmax(x, y));
  case Op::Sqrt:
    return bits_of(std::sqrt(x));
  case Op::Rcp:
    return bits_of(Float{1} / x);
  case Op::Ex2: {
    const Float power = std::exp2(x);
    return bits_of(one.flushes && power < std::numeric_limits<Float>::min() ? Float{0} : power);
  }
  default:
    return bits_of(std::copysign(y, x));
  }
}

uint64_t integer_operation(const Instruction &one, uint64_t x, uint64_t y, uint64_t z) {
  const unsigned bytes = size_of(one.type);
  const bool sign = is_signed(one.type);
  const int64_t sx = extend(x, bytes), sy = extend(y, bytes);
  const uint64_t ux = x & mask_of(bytes), uy = y & mask_of(bytes);
  switch (one.op) {
  case Op::Add:
    return x + y;
  case Op::Sub:
    return x - y;
  case Op::Mul:
    return x * y;
  case Op::Mad:
    return x * y + z;
  case Op::Div:
    if (uy == 0)
      return ~uint64_t{0};
    return sign ? static_cast<uint64_t>(sx / sy) : ux / uy;
  case Op::Rem:
    if (uy == 0)
      return ux;
    return sign ? static_cast<uint64_t>(sx % sy) : ux % uy;
  case Op::MulHigh: {
    const __int128 product = sign ? static_cast<__int128>(sx) * sy
                                  : static_cast<__int128>(static_cast<unsigned __int128>(ux) * uy);
    return static_cast<uint64_t>(product >> 8 * bytes);
  }
  case Op::Neg:
    return -x;
  case Op::Abs:
    return static_cast<uint64_t>(sx < 0 ? -sx : sx);
  case Op::Min:
    return sign ? static_cast<uint64_t>(std::min(sx, sy)) : std::min(ux, uy);
  case Op::Max:
    return sign ? static_cast<uint64_t>(std::max(sx, sy)) : std::max(ux, uy);
  case Op::And:
    return x & y;
  case Op::Or:
    return x | y;
  case Op::Xor:
    return x ^ y;
  case Op::Not:
    return one.type == Type::Pred ? !x : ~x;
  case Op::Shl: {
    const uint64_t by = y & 0xffffffff;
    return by >= 8 * bytes ? 0 : ux << by;
  }
  case Op::Shr: {
    const uint64_t by = std::min<uint64_t>(y & 0xffffffff, 8 * bytes);
    if (sign)
      return static_cast<uint64_t>(sx >> std::min<uint64_t>(by, 63));
    return by >= 8 * bytes ? 0 : ux >> by;
  }
  case Op::Popc:
    return static_cast<uint64_t>(std::popcount(ux));
  default:
    return static_cast<uint64_t>(std::countl_zero(ux)) - (64 - 8 * bytes);
  }
}

uint64_t dot4(const Instruction &one, uint64_t x, uint64_t y, uint64_t acc) {
  int64_t sum = static_cast<int32_t>(acc);
  for (int i = 0; i < 4; ++i) {
    const uint64_t a = (x >> 8 * i) & 255, b = (y >> 8 * i) & 255;
    sum += (one.type == Type::S32 ? extend(a, 1) : static_cast<int64_t>(a)) *
           (one.from == Type::S32 ? extend(b, 1) : static_cast<int64_t>(b));
  }
  return static_cast<uint64_t>(sum) & 0xffffffff;
}

uint64_t permute(uint64_t low, uint64_t high, uint64_t selector) {
  const uint64_t bytes = (low & 0xffffffff) | high << 32;
  uint64_t result = 0;
  for (int i = 0; i < 4; ++i) {
    const uint64_t nibble = (selector >> 4 * i) & 15;
    uint64_t byte = (bytes >> 8 * (nibble & 7)) & 255;
    if (nibble & 8)
      byte = byte & 128 ? 255 : 0;
    result |= byte << 8 * i;
  }
  return result;
}

uint64_t bit_field(const Instruction &one, uint64_t x, uint64_t from, uint64_t count) {
  const unsigned width = 8 * size_of(one.type);
  from &= 255;
  count &= 255;
  if (count == 0)
    return 0;
  const uint64_t moved = from >= width ? 0 : (x & mask_of(width / 8)) >> from;
  const uint64_t kept = count >= 64 ? moved : moved & ((uint64_t{1} << count) - 1);
  const uint64_t top = (x >> std::min<uint64_t>(from + count - 1, width - 1)) & 1;
  if (!is_signed(one.type) || !top || count >= width)
    return kept;
  return kept | ~((uint64_t{1} << count) - 1);
}

uint64_t bit_insert(uint64_t piece, uint64_t into, uint64_t at, uint64_t count) {
  at &= 255;
  count &= 255;
  if (at > 63 || count == 0)
    return into;
  const uint64_t mask = (count > 63 ? ~uint64_t{0} : (uint64_t{1} << count) - 1) << at;
  return (into & ~mask) | (piece << at & mask);
}

uint64_t look_up3(uint64_t a, uint64_t b, uint64_t c, uint64_t table) {
  uint64_t result = 0;
  for (int i = 0; i < 32; ++i) {
    const uint64_t index = (a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1);
    result |= (table >> index & 1) << i;
  }
  return result;
}

bool compare(const Instruction &one, uint64_t x, uint64_t y) {
  const unsigned bytes = size_of(one.type);
  if (one.type == Type::F32)
    return compare_floats(one.test, single(x), single(y));
  if (is_float(one.type))
    return compare_floats(one.test, number_of(x, one.type), number_of(y, one.type));
  if (is_signed(one.type))
    return compare_integers(one.test, extend(x, bytes), extend(y, bytes));
  return compare_integers(one.test, x & mask_of(bytes), y & mask_of(bytes));
}

// Of two numbers, with twice as many bits, plus `more`.
uint64_t multiply_wide(const Instruction &one, uint64_t x, uint64_t y, uint64_t more) {
  const unsigned bytes = size_of(one.type);
  const uint64_t product = is_signed(one.type)
                               ? static_cast<uint64_t>(extend(x, bytes) * extend(y, bytes))
                               : (x & mask_of(bytes)) * (y & mask_of(bytes));
  return (product + more) & mask_of(2 * bytes);
}

template uint64_t float_operation(const Instruction &one, float x, float y, float z);
template uint64_t float_operation(const Instruction &one, double x, double y, double z);

} // namespace izh::ptx
