// What a tokenizer's steps make of a text, by the runtime's own code.

#pragma once

#include "compiler/tokenizers/Tokenizers.h"

namespace izhc::tool {

// A TextChanger.
llvm::Expected<std::string> changeText(llvm::ArrayRef<TextStep> steps, llvm::StringRef text);

} // namespace izhc::tool
