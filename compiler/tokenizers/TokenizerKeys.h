// From the tokenizer section of an artifact back to the keys of a GGUF file.

#pragma once

#include "compiler/import/ModelSource.h"

namespace izhc {

// The keys tokenizer.*. Fails with the end of a sentence about the tokenizer where
// GGUF has no words for it. `section` was made by buildTokenizer; empty: a model
// without a tokenizer.
llvm::Expected<std::vector<ExportKey>> tokenizerKeys(llvm::ArrayRef<uint8_t> section,
                                                     llvm::StringRef chatTemplate);

} // namespace izhc
