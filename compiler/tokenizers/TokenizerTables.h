// What the sections of all tokenizer kinds have in common, before it is written
// as a flatbuffer.

#pragma once

#include "compiler/tokenizers/Vocabulary.h"
#include "runtime/schema/tokenizer_generated.h"
#include <string>
#include <vector>

namespace izhc {

struct TokenizerTables {
  izh::schema::TokenizerKind kind = {};
  // Bytes of each token, as tokenizer.fbs wants them for this kind.
  std::vector<std::string> texts;
  std::vector<uint32_t> tokenSlots;
  std::vector<izh::schema::Merge> merges;
  std::vector<uint32_t> mergeSlots;
  std::vector<int32_t> byteTokens;
  std::vector<std::string> patterns;
  bool wholeWords = false;
  bool wordsAtSpaces = false;
  bool addBos = false;
  bool addEos = false;
  bool addSpacePrefix = false;
};

// One function a kind of vocabulary: fills in the tables. They may change the
// vocabulary's special ids where the kind has defaults.
llvm::Expected<TokenizerTables> buildByteBpe(const ModelSource &source, Vocabulary &vocabulary,
                                             llvm::StringRef preTokenizer);
llvm::Expected<TokenizerTables> buildScoreBpe(const ModelSource &source, Vocabulary &vocabulary,
                                              llvm::StringRef preTokenizer);

// The slots of `ids` (of distinct texts), keyed by `texts`.
llvm::Expected<std::vector<uint32_t>> buildTokenSlots(const ModelSource &source,
                                                      llvm::ArrayRef<std::string> texts,
                                                      llvm::ArrayRef<uint32_t> ids);

} // namespace izhc
