// Functions of KernelBuilder that compute values: rounding, half floats by
// their bits, exponential, cosine and sine. All without calls to a library,
// and by the same steps on every machine (but for fused multiply-add).

#include "compiler/target/KernelBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace izhc {

using namespace mlir;

namespace {

// The same shape as `like` with another element type.
Type shaped(Value like, Type element) {
  if (auto vector = dyn_cast<VectorType>(like.getType()))
    return VectorType::get(vector.getShape(), element);
  return element;
}

} // namespace

// Adding 1.5 * 2^23 leaves the integer nearest to `a` (ties to even) in the
// low bits of the sum.
Value KernelBuilder::roundToInt(Value a) {
  Value magic = constFloat(a.getType(), 12582912.0);
  Value bits = bitcast(add(a, magic), shaped(a, i32()));
  return sub(bits, constInt(bits.getType(), 0x4b400000));
}

// Shifting exponent and fraction to float32's place leaves the exponent 112
// too small; multiplying by 2^112 mends it for normal and subnormal numbers.
Value KernelBuilder::halfToFloatBits(Value bits) {
  Value wide = extendU(bits, i32());
  Value magnitude = andBits(wide, 0x7fff);
  Value number = bitcast(shl(magnitude, 13), shaped(bits, f32()));
  number = mul(number, constFloat(number.getType(), 0x1p112));
  Value result = bitcast(number, wide.getType());
  // Infinity and NaN: the largest exponent stays the largest.
  Value special = less(constInt(wide.getType(), 0x7bff), magnitude);
  result =
      select(special, orBits(shl(magnitude, 13), constInt(wide.getType(), 0x7f800000)), result);
  result = orBits(result, shl(andBits(wide, 0x8000), 16));
  return bitcast(result, shaped(bits, f32()));
}

Value KernelBuilder::floatToHalfBits(Value a) {
  Type ints = shaped(a, i32());
  Value bits = bitcast(a, ints);
  Value sign = andBits(shrU(bits, 16), 0x8000);
  Value magnitude = andBits(bits, 0x7fffffff);
  // Normal: subtract 112 from the exponent, round the 13 lost bits to even.
  Value odd = andBits(shrU(magnitude, 13), 1);
  Value normal = shrU(add(add(magnitude, odd), constInt(ints, 0xfff - (int64_t(112) << 23))), 13);
  // Subnormal: adding 0.5 aligns the fraction so that the unit of the sum's
  // last place is the smallest half; the addition rounds.
  Value aligned = add(bitcast(magnitude, a.getType()), constFloat(a.getType(), 0.5));
  Value subnormal = sub(bitcast(aligned, ints), constInt(ints, 0x3f000000));
  Value result = select(less(magnitude, constInt(ints, 0x38800000)), subnormal, normal);
  // From 65520 on the nearest half is infinity; NaN stays NaN.
  Value infinite = lessEqual(constInt(ints, 0x477ff000), magnitude);
  result = select(infinite, constInt(ints, 0x7c00), result);
  Value nan = less(constInt(ints, 0x7f800000), magnitude);
  result = select(nan, constInt(ints, 0x7e00), result);
  return truncate(orBits(result, sign), i16());
}

// e^x = 2^n * e^r with n = round(x / ln 2), |r| <= ln 2 / 2; the polynomial is
// the one of Cephes' expf (S. Moshier, public domain coefficients).
Value KernelBuilder::exp(Value x) {
  Type type = x.getType();
  auto c = [&](double value) { return constFloat(type, value); };
  Value clamped = min(max(x, c(-87.3)), c(88.3));
  Value magic = c(12582912.0);
  Value shifted = mulAdd(clamped, c(1.44269504088896341), magic);
  Value n = sub(shifted, magic);
  Value r = mulAdd(n, c(-0.693359375), clamped);
  r = mulAdd(n, c(2.12194440e-4), r);
  Value p = c(1.9875691500e-4);
  for (double coefficient :
       {1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1})
    p = mulAdd(p, r, c(coefficient));
  p = add(mulAdd(p, mul(r, r), r), c(1.0));
  Value exponent = shl(bitcast(shifted, shaped(x, i32())), 23);
  Value scaled = bitcast(add(bitcast(p, exponent.getType()), exponent), type);
  return select(less(x, c(-87.3)), c(0.0), scaled);
}

Value KernelBuilder::sigmoid(Value x) {
  Value one = constFloat(x.getType(), 1.0);
  return div(one, add(exp(neg(x)), one));
}

Value KernelBuilder::silu(Value x) {
  return div(x, add(exp(neg(x)), constFloat(x.getType(), 1.0)));
}

// (1 + tanh(u)) / 2 = 1 / (1 + e^-2u), which loses no digits where tanh nears -1.
Value KernelBuilder::gelu(Value x) {
  auto c = [&](double value) { return constFloat(x.getType(), value); };
  Value cubic = mul(mul(x, x), mul(x, c(0.044715)));
  Value u = mul(add(x, cubic), c(-2 * 0.79788456080286536));
  return div(x, add(exp(u), c(1.0)));
}

Value KernelBuilder::tanh(Value x) {
  auto c = [&](double value) { return constFloat(x.getType(), value); };
  return sub(c(1.0), div(c(2.0), add(exp(mul(x, c(2.0))), c(1.0))));
}

// max(x, 0) + log(1 + e^-|x|)
Value KernelBuilder::softplus(Value x) {
  Value zeroes = zero(x.getType());
  return add(max(x, zeroes), log(add(exp(neg(abs(x))), constFloat(x.getType(), 1.0))));
}

// In double: x = m * 2^e with m from sqrt(1/2) to sqrt(2), and log(m) =
// 2 atanh(z) with z = (m - 1) / (m + 1), |z| < 0.172.
Value KernelBuilder::log(Value x) {
  Type ints = shaped(x, i32());
  Value bits = bitcast(x, ints);
  // Shifted so that the exponent's field changes at sqrt(1/2).
  Value moved = sub(bits, constInt(ints, 0x3f3504f3));
  Value exponent = shrS(moved, 23);
  Value m = extendFloat(bitcast(sub(bits, shl(exponent, 23)), x.getType()));
  auto c = [&](double value) { return constFloat(m.getType(), value); };
  Value z = div(sub(m, c(1.0)), add(m, c(1.0)));
  Value z2 = mul(z, z), p;
  for (double coefficient : {2.0 / 11, 2.0 / 9, 2.0 / 7, 2.0 / 5, 2.0 / 3, 2.0})
    p = p ? add(mul(p, z2), c(coefficient)) : c(coefficient);
  Value scaled = mul(extendFloat(intToFloat(exponent)), c(0.69314718055994531));
  return truncateFloat(add(mul(p, z), scaled));
}

Value KernelBuilder::softcap(Value x, double cap) {
  if (cap == 0)
    return x;
  return mul(tanh(mul(x, constFloat(x.getType(), 1.0 / cap))), constFloat(x.getType(), cap));
}

// Reduced by multiples of pi/2 in two parts, in double: for |angle| < 2^25 the
// error is far below float32's. Taylor polynomials on |r| <= pi/4.
void KernelBuilder::cosSin(Value angle, Value &cosine, Value &sine) {
  Value a = extendFloat(angle);
  Type type = a.getType();
  auto c = [&](double value) { return constFloat(type, value); };
  Value magic = c(6755399441055744.0); // 1.5 * 2^52
  Value shifted = add(mul(a, c(0.63661977236758134308)), magic);
  Value n = sub(shifted, magic);
  Value r = sub(a, mul(n, c(1.5707963267341256142)));
  r = sub(r, mul(n, c(6.0771005065061922e-11)));
  Value r2 = mul(r, r);
  auto polynomial = [&](std::initializer_list<double> coefficients) {
    Value p;
    for (double value : coefficients)
      p = p ? add(mul(p, r2), c(value)) : c(value);
    return p;
  };
  Value s = mul(
      r, polynomial({1.6059043836821613e-10, -2.5052108385441719e-8, 2.7557319223985891e-6,
                     -1.9841269841269841e-4, 8.3333333333333333e-3, -1.6666666666666667e-1, 1.0}));
  Value co = polynomial({2.0876756987868099e-9, -2.7557319223985891e-7, 2.4801587301587302e-5,
                         -1.3888888888888889e-3, 4.1666666666666667e-2, -0.5, 1.0});
  Value quadrant = bitcast(shifted, shaped(angle, i64()));
  Value zeroInt = zero(quadrant.getType());
  Value odd = equal(andBits(quadrant, 1), constInt(quadrant.getType(), 1));
  Value sineOf = select(odd, co, s), cosineOf = select(odd, s, co);
  Value sineKept = equal(andBits(quadrant, 2), zeroInt);
  Value cosineKept = equal(andBits(add(quadrant, 1), 2), zeroInt);
  sine = truncateFloat(select(sineKept, sineOf, neg(sineOf)));
  cosine = truncateFloat(select(cosineKept, cosineOf, neg(cosineOf)));
}

} // namespace izhc
