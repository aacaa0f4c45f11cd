// The steps of a tokenizer.json around its model: what happens to a text before
// it is merged, and after. Each known step maps onto something the runtime
// does; one that doesn't is an error.

#pragma once

#include "compiler/import/ModelSource.h"
#include "compiler/support/Json.h"
#include "compiler/tokenizers/TokenizerTables.h"

namespace izhc {

// A token before or after a text: its text, empty if there is none, and its id
// where the file says it.
struct SurroundingToken {
  std::string text;
  std::optional<uint64_t> id;
};

struct JsonPipeline {
  std::vector<TextStep> steps;
  // Of `steps`, the first ones, which are the normalizer's.
  size_t normalSteps = 0;
  // Words are those of BERT's tokenizers.
  bool bertWords = false;
  // Text is cut by these (PCRE2), and words are written in the byte alphabet.
  std::vector<std::string> patterns;
  // Indices of those whose matches are all that is kept of a text.
  std::vector<size_t> covering;
  bool byteLevel = false;
  // See tokenizer.fbs.
  std::vector<uint8_t> byteCuts;
  // Spaces become U+2581.
  bool escapesSpaces = false;
  bool splitSpaces = false;
  bool spacePrefix = false;
  // One of `steps` puts it.
  bool prefixInSteps = false;
  bool spacePrefixOnce = false;
  bool spacePrefixSkips = false;
  SurroundingToken before, after;
};

llvm::Expected<JsonPipeline> readPipeline(const ModelSource &source, const Json &root);

} // namespace izhc
