// The tokens of a model's metadata with scores, types and special ids, checked
// against each other. What kind of tokenizer uses them is not known here.

#pragma once

#include "compiler/import/ModelSource.h"
#include "llvm/ADT/CachedHashString.h"
#include "llvm/ADT/DenseMap.h"
#include <optional>
#include <vector>

namespace izhc {

struct Vocabulary {
  // As in the file; may be empty or equal to an earlier one.
  std::vector<llvm::StringRef> texts;
  // schema::TokenType of each.
  std::vector<uint8_t> types;
  // Empty, or one of each; none is NaN.
  std::vector<float> scores;
  // The lowest id of each text that is not empty.
  llvm::DenseMap<llvm::CachedHashStringRef, uint32_t> ids;
  // Of each whether it is a piece that texts are made of; others are only looked for
  // as a whole. Empty: all are, as far as the file tells.
  std::vector<bool> pieces;
  // -1: none. All others are below texts.size().
  int32_t bos = -1, eos = -1, eot = -1, unk = -1, pad = -1;
  // Tokens after which generation ends, ascending.
  std::vector<uint32_t> ends;
  // Absent if the metadata doesn't say.
  std::optional<bool> addBos, addEos, addSpacePrefix;

  size_t size() const { return texts.size(); }
  // -1 if no token has this text.
  int32_t find(llvm::StringRef text) const {
    auto found = ids.find(llvm::CachedHashStringRef(text));
    return found == ids.end() ? -1 : int32_t(found->second);
  }
  bool isPiece(uint32_t id) const { return pieces.empty() || pieces[id]; }
  // The same of pieces.
  int32_t findPiece(llvm::StringRef text) const {
    int32_t id = find(text);
    return id >= 0 && isPiece(uint32_t(id)) ? id : -1;
  }
};

// Reads tokenizer.ggml.*; every error names the file and the key.
llvm::Expected<Vocabulary> readVocabulary(const ModelSource &source);

// Finds well-known control tokens by their text: fills in `ends` and `eot`, and
// makes tokens that only look like ordinary ones control tokens.
void markControlTokens(Vocabulary &vocabulary);

} // namespace izhc
