// Lays out the fields of an activation record one after the other.

#include "dialects/pack/ActLayout.h"
#include "llvm/Support/MathExtras.h"

namespace izhc::pack {

ActLayout::ActLayout(ActType type) {
  int64_t end = 0;
  auto field = [&](int64_t bytes) {
    int64_t at = end;
    end = llvm::alignTo(end + bytes, 64);
    return at;
  };
  if (type.getKind() == ActKind::F32) {
    padded = llvm::alignTo(type.getWidth(), 64);
    codes = scales = field(4 * padded);
  } else {
    int64_t group = type.getKind() == ActKind::Block32 ? 32 : 256;
    padded = llvm::alignTo(type.getWidth(), group == 32 ? 64 : 256);
    codes = field(padded);
    scales = field(4 * (padded / group));
    if (type.getKind() == ActKind::Block256)
      exponents = field(4 * (padded / 32));
    if (type.getSums())
      sums = field(4 * (padded / 32));
    for (size_t i = 0; i < type.getCorr32().size(); ++i)
      corr32.push_back(field(4 * (padded / 32)));
    for (size_t i = 0; i < type.getCorr16().size(); ++i)
      corr16.push_back(field(4 * (padded / 16)));
  }
  stride = end % 4096 == 0 ? end + 64 : end;
}

int64_t ActLayout::find(llvm::ArrayRef<int64_t> zs, llvm::ArrayRef<int64_t> offsets, int64_t z) {
  for (size_t i = 0; i < zs.size(); ++i)
    if (zs[i] == z)
      return offsets[i];
  return -1;
}

} // namespace izhc::pack
