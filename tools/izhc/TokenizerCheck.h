// Whether a model's tokenizer works, and does what the files beside it expect.

#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <string>
#include <vector>

namespace izhc::tool {

struct CheckedTokenizer {
  std::vector<uint8_t> section; // empty if the model has no tokenizer
  // Files with texts and ids that it agrees with, and how many texts they have.
  std::vector<std::string> vectors;
  unsigned texts = 0;
};

// The tokenizer section of a model, after it has encoded texts of many kinds
// with the runtime's own code, and given those back that it must. Two more
// things are looked at, where they exist; the first difference is an error:
// - texts with their ids: NAME.inp or NAME.gguf.inp beside NAME.gguf, or
//   tokenizer.inp in a folder, and the same with .out (which must be there,
//   then). Texts end with a line feed and the line __ggml_vocab_test__; each
//   line of .out holds one text's ids, without what the model adds around a
//   text and with control tokens as plain text;
// - tokenizer.json and tokenizer.model in one folder, which must give the same
//   ids for a list of awkward texts.
llvm::Expected<CheckedTokenizer> makeCheckedTokenizer(const std::string &model,
                                                      llvm::StringRef preTokenizer);

} // namespace izhc::tool
