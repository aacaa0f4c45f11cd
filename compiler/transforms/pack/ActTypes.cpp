// Chooses activations by what a FormatSpec says of blocks, zero points and
// minima; no format is named here.

#include "compiler/transforms/pack/ActTypes.h"
#include "compiler/formats/Format.h"
#include "llvm/ADT/STLExtras.h"
#include <set>

namespace izhc {

using pack::ActKind;
using pack::ActType;

static ActKind kindFor(const FormatSpec &format) {
  if (format.kind != ElementKind::Quantized)
    return ActKind::F32;
  return format.blockWeights == 256 ? ActKind::Block256 : ActKind::Block32;
}

ActType chooseActType(mlir::MLIRContext *context, int64_t width,
                      llvm::ArrayRef<llvm::StringRef> formats, bool exact) {
  std::set<ActKind> kinds;
  std::set<int64_t> corr32, corr16;
  bool sums = false;
  for (llvm::StringRef name : formats) {
    const FormatSpec &format = *findFormat(name);
    kinds.insert(exact ? ActKind::F32 : kindFor(format));
    // Minima of 16 weights read plain sums of codes, which is what z = -1 gives.
    if (format.hasMin && format.subWeights == 16)
      corr16.insert(-1);
    else
      sums |= format.hasMin;
    if (format.zeroPoint != 0)
      (format.subWeights == 16 ? corr16 : corr32).insert(format.zeroPoint);
    // For machines whose dot product takes unsigned codes only.
    if (format.signedCodes)
      corr32.insert(128);
  }
  // Weights in blocks of 256 can read scales of 32, so that a mixture stays
  // with integer products. Float weights need float activations.
  if (kinds.count(ActKind::F32) == 0 && kinds.count(ActKind::Block32))
    kinds = {ActKind::Block32};
  if (kinds.size() != 1 || *kinds.begin() == ActKind::F32)
    return ActType::get(context, width, ActKind::F32, false, {}, {});
  llvm::SmallVector<int64_t> by32(corr32.begin(), corr32.end());
  llvm::SmallVector<int64_t> by16(corr16.begin(), corr16.end());
  return ActType::get(context, width, *kinds.begin(), sums, by32, by16);
}

static llvm::SmallVector<int64_t> unite(llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b) {
  std::set<int64_t> all(a.begin(), a.end());
  all.insert(b.begin(), b.end());
  return llvm::to_vector(all);
}

ActType mergeActTypes(ActType a, ActType b) {
  assert(a.getWidth() == b.getWidth() && a.getKind() == b.getKind());
  return ActType::get(a.getContext(), a.getWidth(), a.getKind(), a.getSums() || b.getSums(),
                      unite(a.getCorr32(), b.getCorr32()), unite(a.getCorr16(), b.getCorr16()));
}

} // namespace izhc
