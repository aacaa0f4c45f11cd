// The streaming hash. The library is used as a header so that nothing else
// needs to link it.

#include "compiler/import/Hash.h"

#include "llvm/ADT/StringExtras.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>

using namespace izhc;

std::string izhc::hashPieces(llvm::ArrayRef<llvm::ArrayRef<uint8_t>> pieces,
                             llvm::function_ref<void(llvm::ArrayRef<uint8_t>)> done) {
  constexpr size_t kStep = 4 << 20;
  // Aligned and on the stack: the library's own allocation can fail.
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  for (llvm::ArrayRef<uint8_t> piece : pieces)
    for (size_t at = 0; at < piece.size(); at += kStep) {
      llvm::ArrayRef<uint8_t> part = piece.slice(at, std::min(kStep, piece.size() - at));
      XXH3_128bits_update(&state, part.data(), part.size());
      done(part);
    }
  XXH128_canonical_t digest;
  XXH128_canonicalFromHash(&digest, XXH3_128bits_digest(&state));
  return llvm::toHex(llvm::ArrayRef(digest.digest), /*LowerCase=*/true);
}
