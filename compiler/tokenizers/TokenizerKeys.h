// From the tokenizer section of an artifact back to the keys of a GGUF file.

#pragma once

#include "compiler/import/ModelSource.h"

namespace izhc {

// The keys tokenizer.*. Empty where GGUF has no words for this tokenizer: a
// pattern without a name, or a kind that decoders don't use there. `section` was
// made by buildTokenizer; empty: a model without a tokenizer.
std::vector<ExportKey> tokenizerKeys(llvm::ArrayRef<uint8_t> section, llvm::StringRef chatTemplate);

} // namespace izhc
