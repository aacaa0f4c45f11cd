// The names are those of the weight formats with the same blocks.

#include "compiler/formats/CacheTypes.h"

namespace izhc {

std::optional<int64_t> cacheTypeBits(llvm::StringRef name) {
  for (int64_t bits : {16, 8, 4})
    if (name == cacheTypeName(bits))
      return bits;
  return std::nullopt;
}

llvm::StringRef cacheTypeName(int64_t bits) {
  return bits == 16 ? "f16" : bits == 8 ? "q8_0" : "q4_0";
}

llvm::StringRef cacheTypeNames() { return "f16, q8_0, q4_0"; }

} // namespace izhc
