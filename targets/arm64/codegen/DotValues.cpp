// Follows a dot's values back to the memory that they come from.

#include "targets/arm64/codegen/DotValues.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace izhc::arm64 {

using namespace mlir;

Value intrinsic(KernelBuilder &k, Type result, llvm::StringRef name, ValueRange operands) {
  return LLVM::CallIntrinsicOp::create(k.builder, k.loc, result, k.builder.getStringAttr(name),
                                       operands)
      .getResult(0);
}

Place placeOf(pack::DotOp dot) {
  auto bytes = dot.getValues().getDefiningOp<vector::BitCastOp>();
  auto splat = bytes ? bytes.getSource().getDefiningOp<vector::BroadcastOp>() : nullptr;
  auto load = splat ? splat.getSource().getDefiningOp<LLVM::LoadOp>() : nullptr;
  if (!load || !load.getType().isInteger(32))
    return {};
  Place place{load.getAddr()};
  while (auto step = place.base.getDefiningOp<LLVM::GEPOp>()) {
    llvm::ArrayRef<int32_t> indices = step.getRawConstantIndices();
    if (!step.getElemType().isInteger(8) || indices.size() != 1 ||
        indices[0] == LLVM::GEPOp::kDynamicIndex)
      break;
    place = {step.getBase(), place.offset + indices[0]};
  }
  return place;
}

bool valuesInARow(llvm::ArrayRef<pack::DotOp> dots) {
  if (dots.size() < 4)
    return false;
  Place first = placeOf(dots[0]);
  for (int64_t i : {1, 2, 3}) {
    Place place = placeOf(dots[i]);
    if (!first.base || place.base != first.base || place.offset != first.offset + 4 * i)
      return false;
  }
  return true;
}

} // namespace izhc::arm64
