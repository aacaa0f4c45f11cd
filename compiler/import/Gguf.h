// A GGUF model, of one file or split over several, as a ModelSource.

#pragma once

#include "compiler/import/ModelSource.h"

namespace izhc {

// Opens `path` and, if it is the first file of a split model
// ("-00001-of-00003.gguf"), the others beside it.
llvm::Expected<std::unique_ptr<ModelSource>> openGguf(llvm::StringRef path);

// A model whose only file is `bytes`, which must outlive the result; `name` is
// for messages. For tests and fuzzers.
llvm::Expected<std::unique_ptr<ModelSource>> openGgufBytes(llvm::StringRef name,
                                                           llvm::ArrayRef<uint8_t> bytes);

} // namespace izhc
