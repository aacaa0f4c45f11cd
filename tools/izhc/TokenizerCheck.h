// Whether a model's tokenizer does what the files beside it expect.

#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace izhc::tool {

// Two things are looked at, where they exist; the first difference is an error:
// - texts with their ids: NAME.inp and NAME.out beside NAME.gguf, or
//   tokenizer.inp and tokenizer.out in a folder. Texts end with a line feed and
//   the line __ggml_vocab_test__; each line of .out holds one text's ids, without
//   what the model adds around a text and with control tokens as plain text;
// - tokenizer.json and tokenizer.model in one folder, which must give the same
//   ids for a list of awkward texts.
llvm::Error checkTokenizer(const std::string &model, llvm::StringRef preTokenizer);

} // namespace izhc::tool
