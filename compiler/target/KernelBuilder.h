// Short spellings for the IR that kernels are made of: 64-bit integers for
// sizes and offsets, byte pointers, vectors of one dimension, `scf` loops.
// Knows nothing of machines but whether they fuse multiply and add and convert
// half floats.

#pragma once

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace izhc {

struct FloatAbilities {
  bool fma = false;          // one rounding for a * b + c
  bool convertsHalf = false; // float16 <-> float32 in hardware
};

class KernelBuilder {
public:
  using Value = mlir::Value;
  using Values = llvm::SmallVector<Value>;

  KernelBuilder(mlir::OpBuilder &builder, mlir::Location loc, FloatAbilities abilities)
      : builder(builder), loc(loc), abilities(abilities) {}

  mlir::OpBuilder &builder;
  mlir::Location loc;
  FloatAbilities abilities;

  // ---- Types
  mlir::Type i8() { return builder.getI8Type(); }
  mlir::Type i16() { return builder.getI16Type(); }
  mlir::Type i32() { return builder.getI32Type(); }
  mlir::Type i64() { return builder.getI64Type(); }
  mlir::Type f32() { return builder.getF32Type(); }
  mlir::Type f64() { return builder.getF64Type(); }
  mlir::Type ptr() { return mlir::LLVM::LLVMPointerType::get(builder.getContext()); }
  // vector<n x element>, or the element itself for n = 0.
  mlir::Type vec(int64_t n, mlir::Type element);

  // ---- Constants; `like` may be a scalar or a vector type (splat)
  Value constI64(int64_t value);
  Value constInt(mlir::Type like, int64_t value);
  Value constFloat(mlir::Type like, double value);
  Value zero(mlir::Type like);

  // ---- Arithmetic: integer or float by the operands' type
  Value add(Value a, Value b);
  Value sub(Value a, Value b);
  Value mul(Value a, Value b);
  Value div(Value a, Value b);   // float; unsigned for integers
  Value rem(Value a, Value b);   // unsigned
  Value add(Value a, int64_t b); // b == 0 adds nothing
  Value mul(Value a, int64_t b); // b == 1 multiplies nothing
  Value div(Value a, int64_t b);
  Value rem(Value a, int64_t b);
  Value neg(Value a);                      // float
  Value mulAdd(Value a, Value b, Value c); // a * b + c, fused if the machine can
  Value max(Value a, Value b);             // float: of two numbers, no NaN rule; integers: signed
  Value min(Value a, Value b);
  Value abs(Value a);  // float
  Value sqrt(Value a); // float, correctly rounded
  Value andBits(Value a, Value b);
  Value andBits(Value a, int64_t mask);
  Value orBits(Value a, Value b);
  Value xorBits(Value a, Value b);
  Value xorBits(Value a, int64_t mask);
  Value shl(Value a, int64_t by);
  Value shrU(Value a, int64_t by);
  Value shrS(Value a, int64_t by);
  Value less(Value a, Value b); // ordered for floats, signed for integers
  Value lessEqual(Value a, Value b);
  Value equal(Value a, Value b);
  Value select(Value condition, Value a, Value b);

  // ---- Conversions (shape kept)
  Value intToFloat(Value a); // signed i32 -> f32
  Value floatToInt(Value a); // f32 -> i32, towards zero
  Value roundToInt(Value a); // f32 -> i32, half to even; |a| < 2^22
  Value extendU(Value a, mlir::Type element);
  Value extendS(Value a, mlir::Type element);
  Value truncate(Value a, mlir::Type element);
  Value extendFloat(Value a);   // f32 -> f64
  Value truncateFloat(Value a); // f64 -> f32
  Value bitcast(Value a, mlir::Type to);
  Value halfToFloat(Value bits); // i16 -> f32, exact
  Value floatToHalf(Value a);    // f32 -> i16 bits, round to nearest even

  // ---- Vectors
  Value splat(Value scalar, int64_t n);
  Value extract(Value vector, int64_t lane);
  Value insert(Value scalar, Value vector, int64_t lane);
  Value shuffle(Value a, Value b, llvm::ArrayRef<int64_t> lanes);
  // Sums the lanes pairwise: lane i with lane i + n/2, and so on.
  Value sumLanes(Value vector);
  Value maxLanes(Value vector);

  // ---- Memory: byte offsets
  Value at(Value pointer, Value offset);
  Value at(Value pointer, int64_t offset);
  // `align` is what the address is known to be a multiple of.
  Value load(mlir::Type type, Value pointer, unsigned align);
  void store(Value value, Value pointer, unsigned align);
  // One scalar, repeated in n lanes.
  Value loadSplat(mlir::Type element, int64_t n, Value pointer);
  // Memory of the function's stack frame, aligned to 64 bytes; made in the
  // entry block of the function around the current place.
  Value stack(int64_t bytes);
  // The address of constant bytes, aligned to 64; equal ones are shared.
  Value table(llvm::ArrayRef<uint8_t> bytes);
  // 32-bit words at `base` plus a byte offset (i32, not negative) in each lane.
  Value gather(Value base, Value offsets);
  void prefetch(Value pointer); // towards the second-level cache

  // ---- Control
  // for (i = lo; i < hi; i += step) with loop-carried values; returns these.
  // The body returns the next ones.
  Values loop(Value lo, Value hi, Value step, llvm::ArrayRef<Value> inits,
              llvm::function_ref<Values(Value i, llvm::ArrayRef<Value> carried)> body);
  void loop(Value lo, Value hi, int64_t step, llvm::function_ref<void(Value i)> body);
  void ifThen(Value condition, llvm::function_ref<void()> body);
  void ifThenElse(Value condition, llvm::function_ref<void()> yes, llvm::function_ref<void()> no);

  // ---- Functions of one argument, on f32 scalars or vectors
  // e^x, relative error below 2e-7; 0 below -87.3; finite above 88.
  Value exp(Value x);
  // 1 / (1 + e^-x)
  Value sigmoid(Value x);
  // x / (1 + e^-x)
  Value silu(Value x);
  // x / 2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))
  Value gelu(Value x);
  // Absolute error below 2e-7.
  Value tanh(Value x);
  // log(1 + e^x)
  Value softplus(Value x);
  // Natural logarithm of normal numbers above 0, to float32 precision.
  Value log(Value x);
  // cap * tanh(x / cap); x itself for a cap of 0.
  Value softcap(Value x, double cap);
  // Cosine and sine of `angle` (f32, |angle| < 2^25) to float32 precision,
  // reduced and evaluated in double.
  void cosSin(Value angle, Value &cosine, Value &sine);

private:
  Value halfToFloatBits(Value bits);
  Value floatToHalfBits(Value a);
};

} // namespace izhc
