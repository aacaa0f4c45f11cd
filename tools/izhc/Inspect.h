// The two kinds of file that `izhc inspect` knows.

#pragma once

#include "compiler/support/MappedFile.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace izh::schema {
struct Artifact;
}

namespace izhc::tool {

// True if the file begins like an .izh file.
bool isArtifact(llvm::ArrayRef<uint8_t> bytes);

// The tables of an .izh file, verified; they point into the file.
llvm::Expected<const izh::schema::Artifact *> readRoot(const MappedFile &file);

// Prints what is in the file, for people or as one JSON object.
llvm::Error inspectArtifact(const MappedFile &file, bool json);
llvm::Error inspectModel(llvm::StringRef path, bool json);

// A string from a file, as valid UTF-8.
std::string clean(llvm::StringRef text);

} // namespace izhc::tool
