// The unpacking of codes is written for machines without byte shifts:
//
//   and(bytes(shift(words(v), n)), mask)  ->  and(shift(v, n), mask)

#include "targets/arm64/codegen/ByteShifts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

namespace izhc::arm64 {

using namespace mlir;

namespace {

// The value that every lane of a constant has.
std::optional<uint64_t> splatOf(Value value) {
  DenseElementsAttr attr;
  if (!matchPattern(value, m_Constant(&attr)) || !attr.isSplat())
    return std::nullopt;
  return attr.getSplatValue<llvm::APInt>().getZExtValue();
}

// The shift of bytes with the same result as `mask`, or null.
Value shifted(arith::AndIOp mask) {
  auto bytes = cast<VectorType>(mask.getType());
  auto back = mask.getLhs().getDefiningOp<vector::BitCastOp>();
  Operation *shift = back ? back.getSource().getDefiningOp() : nullptr;
  if (!shift || !isa<arith::ShRUIOp, arith::ShLIOp>(shift))
    return {};
  auto words = shift->getOperand(0).getDefiningOp<vector::BitCastOp>();
  std::optional<uint64_t> by = splatOf(shift->getOperand(1)), bits = splatOf(mask.getRhs());
  if (!words || words.getSource().getType() != bytes || !by || !bits || *by >= 8)
    return {};
  bool right = isa<arith::ShRUIOp>(shift);
  uint64_t own = right ? 255u >> *by : 255u << *by & 255u;
  // A bit from the neighbour would be lost.
  if (*bits & ~own)
    return {};
  OpBuilder builder(mask);
  Value amount = arith::ConstantOp::create(
      builder, mask.getLoc(), DenseElementsAttr::get(bytes, builder.getI8IntegerAttr(*by)));
  Value source = words.getSource();
  Value result = right ? Value(arith::ShRUIOp::create(builder, mask.getLoc(), source, amount))
                       : Value(arith::ShLIOp::create(builder, mask.getLoc(), source, amount));
  if (*bits == own)
    return result;
  return arith::AndIOp::create(builder, mask.getLoc(), result, mask.getRhs());
}

} // namespace

void shiftBytes(ModuleOp module) {
  llvm::SmallVector<arith::AndIOp> masks;
  module.walk([&](arith::AndIOp mask) {
    auto type = dyn_cast<VectorType>(mask.getType());
    if (type && type.getElementType().isInteger(8))
      masks.push_back(mask);
  });
  for (arith::AndIOp mask : masks)
    if (Value result = shifted(mask)) {
      mask.getResult().replaceAllUsesWith(result);
      mask.erase();
    }
}

} // namespace izhc::arm64
