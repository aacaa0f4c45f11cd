// Operations, memory and control flow of KernelBuilder. The mathematical
// functions are in KernelMath.cpp.

#include "compiler/target/KernelBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace izhc {

using namespace mlir;

namespace {

bool isFloat(Type type) { return isa<FloatType>(getElementTypeOrSelf(type)); }

// `like` with another element type.
Type withElement(Type like, Type element) {
  if (auto vector = dyn_cast<VectorType>(like))
    return VectorType::get(vector.getShape(), element);
  return element;
}

} // namespace

Type KernelBuilder::vec(int64_t n, Type element) {
  return n ? Type(VectorType::get({n}, element)) : element;
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

Value KernelBuilder::constI64(int64_t value) { return constInt(i64(), value); }

Value KernelBuilder::constInt(Type like, int64_t value) {
  auto element = cast<IntegerType>(getElementTypeOrSelf(like));
  TypedAttr attr = IntegerAttr::get(element, llvm::APInt(element.getWidth(), value, true, true));
  if (auto vector = dyn_cast<VectorType>(like))
    attr = DenseElementsAttr::get(vector, Attribute(attr));
  return arith::ConstantOp::create(builder, loc, attr);
}

Value KernelBuilder::constFloat(Type like, double value) {
  auto element = cast<FloatType>(getElementTypeOrSelf(like));
  TypedAttr attr = FloatAttr::get(element, value);
  if (auto vector = dyn_cast<VectorType>(like))
    attr = DenseElementsAttr::get(vector, Attribute(attr));
  return arith::ConstantOp::create(builder, loc, attr);
}

Value KernelBuilder::zero(Type like) {
  return isFloat(like) ? constFloat(like, 0.0) : constInt(like, 0);
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

#define IZH_BINARY(NAME, FLOAT_OP, INT_OP)                                                         \
  Value KernelBuilder::NAME(Value a, Value b) {                                                    \
    if (isFloat(a.getType()))                                                                      \
      return arith::FLOAT_OP::create(builder, loc, a, b);                                          \
    return arith::INT_OP::create(builder, loc, a, b);                                              \
  }
IZH_BINARY(add, AddFOp, AddIOp)
IZH_BINARY(sub, SubFOp, SubIOp)
IZH_BINARY(mul, MulFOp, MulIOp)
IZH_BINARY(div, DivFOp, DivUIOp)
#undef IZH_BINARY

Value KernelBuilder::rem(Value a, Value b) { return arith::RemUIOp::create(builder, loc, a, b); }

Value KernelBuilder::add(Value a, int64_t b) { return b ? add(a, constInt(a.getType(), b)) : a; }
Value KernelBuilder::mul(Value a, int64_t b) {
  return b == 1 ? a : mul(a, constInt(a.getType(), b));
}
Value KernelBuilder::div(Value a, int64_t b) { return div(a, constInt(a.getType(), b)); }
Value KernelBuilder::rem(Value a, int64_t b) { return rem(a, constInt(a.getType(), b)); }

Value KernelBuilder::neg(Value a) { return arith::NegFOp::create(builder, loc, a); }

Value KernelBuilder::mulAdd(Value a, Value b, Value c) {
  if (abilities.fma)
    return math::FmaOp::create(builder, loc, a, b, c);
  return add(mul(a, b), c);
}

// Comparison and selection are what minps and maxps do, without NaN rules.
Value KernelBuilder::max(Value a, Value b) { return select(less(b, a), a, b); }
Value KernelBuilder::min(Value a, Value b) { return select(less(a, b), a, b); }

Value KernelBuilder::abs(Value a) { return math::AbsFOp::create(builder, loc, a); }
Value KernelBuilder::sqrt(Value a) { return math::SqrtOp::create(builder, loc, a); }

Value KernelBuilder::andBits(Value a, Value b) { return arith::AndIOp::create(builder, loc, a, b); }
Value KernelBuilder::andBits(Value a, int64_t mask) {
  return andBits(a, constInt(a.getType(), mask));
}
Value KernelBuilder::orBits(Value a, Value b) { return arith::OrIOp::create(builder, loc, a, b); }
Value KernelBuilder::xorBits(Value a, Value b) { return arith::XOrIOp::create(builder, loc, a, b); }
Value KernelBuilder::xorBits(Value a, int64_t mask) {
  return xorBits(a, constInt(a.getType(), mask));
}
Value KernelBuilder::shl(Value a, int64_t by) {
  return by ? Value(arith::ShLIOp::create(builder, loc, a, constInt(a.getType(), by))) : a;
}
Value KernelBuilder::shrU(Value a, int64_t by) {
  return by ? Value(arith::ShRUIOp::create(builder, loc, a, constInt(a.getType(), by))) : a;
}
Value KernelBuilder::shrS(Value a, int64_t by) {
  return by ? Value(arith::ShRSIOp::create(builder, loc, a, constInt(a.getType(), by))) : a;
}

Value KernelBuilder::less(Value a, Value b) {
  if (isFloat(a.getType()))
    return arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OLT, a, b);
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt, a, b);
}
Value KernelBuilder::lessEqual(Value a, Value b) {
  if (isFloat(a.getType()))
    return arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OLE, a, b);
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sle, a, b);
}
Value KernelBuilder::equal(Value a, Value b) {
  if (isFloat(a.getType()))
    return arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OEQ, a, b);
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, a, b);
}
Value KernelBuilder::select(Value condition, Value a, Value b) {
  return arith::SelectOp::create(builder, loc, condition, a, b);
}

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

Value KernelBuilder::intToFloat(Value a) {
  return arith::SIToFPOp::create(builder, loc, withElement(a.getType(), f32()), a);
}
Value KernelBuilder::floatToInt(Value a) {
  return arith::FPToSIOp::create(builder, loc, withElement(a.getType(), i32()), a);
}
Value KernelBuilder::extendU(Value a, Type element) {
  return arith::ExtUIOp::create(builder, loc, withElement(a.getType(), element), a);
}
Value KernelBuilder::extendS(Value a, Type element) {
  return arith::ExtSIOp::create(builder, loc, withElement(a.getType(), element), a);
}
Value KernelBuilder::truncate(Value a, Type element) {
  return arith::TruncIOp::create(builder, loc, withElement(a.getType(), element), a);
}
Value KernelBuilder::extendFloat(Value a) {
  return arith::ExtFOp::create(builder, loc, withElement(a.getType(), f64()), a);
}
Value KernelBuilder::truncateFloat(Value a) {
  return arith::TruncFOp::create(builder, loc, withElement(a.getType(), f32()), a);
}

Value KernelBuilder::bitcast(Value a, Type to) {
  if (a.getType() == to)
    return a;
  if (isa<VectorType>(to))
    return vector::BitCastOp::create(builder, loc, cast<VectorType>(to), a);
  return arith::BitcastOp::create(builder, loc, to, a);
}

Value KernelBuilder::halfToFloat(Value bits) {
  if (!abilities.convertsHalf)
    return halfToFloatBits(bits);
  Value half = bitcast(bits, withElement(bits.getType(), builder.getF16Type()));
  return arith::ExtFOp::create(builder, loc, withElement(bits.getType(), f32()), half);
}

Value KernelBuilder::floatToHalf(Value a) {
  if (!abilities.convertsHalf)
    return floatToHalfBits(a);
  Value half =
      arith::TruncFOp::create(builder, loc, withElement(a.getType(), builder.getF16Type()), a);
  return bitcast(half, withElement(a.getType(), i16()));
}

//===----------------------------------------------------------------------===//
// Vectors
//===----------------------------------------------------------------------===//

Value KernelBuilder::splat(Value scalar, int64_t n) {
  if (n == 0)
    return scalar;
  return vector::BroadcastOp::create(builder, loc, VectorType::get({n}, scalar.getType()), scalar);
}

Value KernelBuilder::extract(Value vector, int64_t lane) {
  return vector::ExtractOp::create(builder, loc, vector, lane);
}

Value KernelBuilder::insert(Value scalar, Value vector, int64_t lane) {
  return vector::InsertOp::create(builder, loc, scalar, vector, lane);
}

Value KernelBuilder::shuffle(Value a, Value b, llvm::ArrayRef<int64_t> lanes) {
  return vector::ShuffleOp::create(builder, loc, a, b, lanes);
}

static Value foldLanes(KernelBuilder &k, Value vector,
                       llvm::function_ref<Value(Value, Value)> join) {
  int64_t n = cast<VectorType>(vector.getType()).getDimSize(0);
  while (n > 1) {
    n /= 2;
    llvm::SmallVector<int64_t> low, high;
    for (int64_t i = 0; i < n; ++i) {
      low.push_back(i);
      high.push_back(i + n);
    }
    vector = join(k.shuffle(vector, vector, low), k.shuffle(vector, vector, high));
  }
  return k.extract(vector, 0);
}

Value KernelBuilder::sumLanes(Value vector) {
  return foldLanes(*this, vector, [&](Value a, Value b) { return add(a, b); });
}
Value KernelBuilder::maxLanes(Value vector) {
  return foldLanes(*this, vector, [&](Value a, Value b) { return max(a, b); });
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value KernelBuilder::at(Value pointer, Value offset) {
  return LLVM::GEPOp::create(builder, loc, ptr(), i8(), pointer,
                             llvm::ArrayRef<LLVM::GEPArg>{offset});
}

Value KernelBuilder::at(Value pointer, int64_t offset) {
  if (offset == 0)
    return pointer;
  if (offset == int32_t(offset))
    return LLVM::GEPOp::create(builder, loc, ptr(), i8(), pointer,
                               llvm::ArrayRef<LLVM::GEPArg>{int32_t(offset)});
  return at(pointer, constI64(offset));
}

Value KernelBuilder::load(Type type, Value pointer, unsigned align) {
  return LLVM::LoadOp::create(builder, loc, type, pointer, align);
}

void KernelBuilder::store(Value value, Value pointer, unsigned align) {
  LLVM::StoreOp::create(builder, loc, value, pointer, align);
}

Value KernelBuilder::loadSplat(Type element, int64_t n, Value pointer) {
  return splat(load(element, pointer, element.getIntOrFloatBitWidth() / 8), n);
}

Value KernelBuilder::stack(int64_t bytes) {
  Operation *parent = builder.getInsertionBlock()->getParentOp();
  auto function = isa<func::FuncOp>(parent) ? cast<func::FuncOp>(parent)
                                            : parent->getParentOfType<func::FuncOp>();
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&function.getBody().front());
  Value count = constI64(bytes);
  return LLVM::AllocaOp::create(builder, loc, ptr(), i8(), count, /*alignment=*/64);
}

Value KernelBuilder::table(llvm::ArrayRef<uint8_t> bytes) {
  auto module = builder.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
  auto type = LLVM::LLVMArrayType::get(i8(), bytes.size());
  StringAttr content = builder.getStringAttr(
      llvm::StringRef(reinterpret_cast<const char *>(bytes.data()), bytes.size()));
  int64_t count = 0;
  for (auto global : module.getOps<LLVM::GlobalOp>()) {
    if (global.getValueAttr() == content)
      return LLVM::AddressOfOp::create(builder, loc, ptr(), global.getSymName());
    ++count;
  }
  OpBuilder::InsertionGuard guard(builder);
  std::string name = "izh_table_" + std::to_string(count);
  Value address = LLVM::AddressOfOp::create(builder, loc, ptr(), name);
  builder.setInsertionPointToStart(module.getBody());
  LLVM::GlobalOp::create(builder, loc, type, /*isConstant=*/true, LLVM::Linkage::Internal, name,
                         content, /*alignment=*/64);
  return address;
}

Value KernelBuilder::gather(Value base, Value offsets) {
  int64_t n = cast<VectorType>(offsets.getType()).getDimSize(0);
  Value places = LLVM::GEPOp::create(builder, loc, VectorType::get({n}, ptr()), i8(), base,
                                     llvm::ArrayRef<LLVM::GEPArg>{offsets});
  Type words = vec(n, i32());
  Value all = constInt(vec(n, builder.getI1Type()), 1);
  return LLVM::masked_gather::create(builder, loc, words, places, all, zero(words),
                                     builder.getI32IntegerAttr(4));
}

void KernelBuilder::prefetch(Value pointer) {
  // rw 0 = read, hint 2 = second-level cache, cache 1 = data.
  LLVM::Prefetch::create(builder, loc, pointer, builder.getI32IntegerAttr(0),
                         builder.getI32IntegerAttr(2), builder.getI32IntegerAttr(1));
}

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

KernelBuilder::Values
KernelBuilder::loop(Value lo, Value hi, Value step, llvm::ArrayRef<Value> inits,
                    llvm::function_ref<Values(Value, llvm::ArrayRef<Value>)> body) {
  auto op = scf::ForOp::create(builder, loc, lo, hi, step, inits,
                               [&](OpBuilder &, Location, Value, ValueRange) {});
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(op.getBody());
  llvm::SmallVector<Value> carried(op.getRegionIterArgs().begin(), op.getRegionIterArgs().end());
  Values next = body(op.getInductionVar(), carried);
  scf::YieldOp::create(builder, loc, next);
  return Values(op.getResults().begin(), op.getResults().end());
}

void KernelBuilder::loop(Value lo, Value hi, int64_t step, llvm::function_ref<void(Value)> body) {
  loop(lo, hi, constI64(step), {}, [&](Value i, llvm::ArrayRef<Value>) {
    body(i);
    return Values();
  });
}

void KernelBuilder::ifThen(Value condition, llvm::function_ref<void()> body) {
  auto op = scf::IfOp::create(builder, loc, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(op.thenBlock()->getTerminator());
  body();
}

void KernelBuilder::ifThenElse(Value condition, llvm::function_ref<void()> yes,
                               llvm::function_ref<void()> no) {
  auto op = scf::IfOp::create(builder, loc, condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(op.thenBlock()->getTerminator());
  yes();
  builder.setInsertionPoint(op.elseBlock()->getTerminator());
  no();
}

} // namespace izhc
