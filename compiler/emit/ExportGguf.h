// Writes the GGUF file that an artifact's weights came from, bit for bit.

#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>

namespace izh::schema {
struct Artifact;
}

namespace izhc::emit {

// `artifact` is the verified root of the file whose bytes are `file`. Fails
// with a sentence, without the artifact's name; then nothing is left behind.
// Memory stays near one tile of weights.
llvm::Error exportGguf(const izh::schema::Artifact &artifact, llvm::ArrayRef<uint8_t> file,
                       llvm::StringRef path);

} // namespace izhc::emit
