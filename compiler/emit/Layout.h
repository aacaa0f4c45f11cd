// Where the sections of one artifact lie and what their hashes are. Internal
// to compiler/emit.

#pragma once

#include "compiler/emit/Artifact.h"
#include <flatbuffers/flatbuffers.h>

namespace izhc::emit {

struct SectionPlace {
  uint64_t offset = 0, size = 0, hash = 0;
};

struct Layout {
  std::vector<SectionPlace> code; // one a variant
  SectionPlace constants, tokenizer, gguf, weights;
  std::vector<uint64_t> weightHashes;   // one a weight
  std::vector<uint64_t> constantHashes; // one a constant
  std::string sourceHash = std::string(kSourceHashDigits, '0');
};

// The flatbuffer. Its size doesn't depend on the numbers in `layout`, so that
// it can be measured before the sections are placed and hashed.
flatbuffers::DetachedBuffer buildRoot(const ArtifactInput &input, const Layout &layout);

} // namespace izhc::emit
