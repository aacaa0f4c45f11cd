#include "compiler/target/vector/ActSums.h"

namespace izhc {

ActSums::ActSums(const WeightReader &reader, pack::ActType type, const pack::ActLayout &act) {
  if (type.getKind() == pack::ActKind::F32)
    return;
  bool by16 = reader.spec.subWeights == 16;
  if (by16 && reader.spec.hasMin) {
    sums16 = pack::ActLayout::find(type.getCorr16(), act.corr16, -1);
    assert(sums16 >= 0 && "the activations lack the sums for minima");
  }
  int64_t zero = reader.flips ? 128 : reader.spec.zeroPoint;
  if (zero == 0)
    return;
  corrWeights = by16 ? 16 : 32;
  corr = by16 ? pack::ActLayout::find(type.getCorr16(), act.corr16, zero)
              : pack::ActLayout::find(type.getCorr32(), act.corr32, zero);
  assert(corr >= 0 && "the activations lack the sums for a zero point");
}

mlir::Value powerOf(KernelBuilder &k, mlir::Value exponents) {
  int64_t lanes = llvm::cast<mlir::VectorType>(exponents.getType()).getDimSize(0);
  return k.bitcast(k.add(exponents, int64_t(127) << 23), k.vec(lanes, k.f32()));
}

} // namespace izhc
