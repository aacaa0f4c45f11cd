// From a model's metadata to the tokenizer section of an artifact
// (runtime/schema/tokenizer.fbs). Knows metadata keys and the names of
// pre-tokenizers; the runtime knows neither.

#pragma once

#include "compiler/import/ModelSource.h"
#include "runtime/schema/tokenizer_generated.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <string>
#include <vector>

namespace izhc {

// See NormalStep of tokenizer.fbs.
struct TextStep {
  izh::schema::NormalStepKind kind;
  std::string from, to;
};

// What steps make of a token's text (UTF-8) on a device: only the runtime's code can
// tell, which the compiler doesn't hold. Fails as that does.
using TextChanger = llvm::function_ref<llvm::Expected<std::string>(llvm::ArrayRef<TextStep> steps,
                                                                   llvm::StringRef text)>;

// The finished flatbuffer; empty if the model has no tokenizer (`no_vocab`, or
// no tokenizer keys at all). `preTokenizer` overrides the name in the metadata
// unless it is empty (the flag --pre-tokenizer). Fails if anything is missing,
// out of range or unknown.
llvm::Expected<std::vector<uint8_t>> buildTokenizer(const ModelSource &source, TextChanger change,
                                                    llvm::StringRef preTokenizer = "");

// Names that --pre-tokenizer accepts, separated by ", ".
std::string preTokenizerNames();

} // namespace izhc
