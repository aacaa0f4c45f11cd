// The steps of a tokenizer.json around its model: what happens to a text before
// it is merged, and after. Each known step maps onto something the runtime
// does; one that doesn't is an error.

#pragma once

#include "compiler/import/ModelSource.h"
#include "compiler/support/Json.h"
#include "compiler/tokenizers/TokenizerTables.h"

namespace izhc {

struct JsonPipeline {
  std::vector<TextStep> steps;
  // Words are those of BERT's tokenizers.
  bool bertWords = false;
  // Text is cut by these (PCRE2), and words are written in the byte alphabet.
  std::vector<std::string> patterns;
  bool byteLevel = false;
  // Spaces become U+2581.
  bool escapesSpaces = false;
  bool splitSpaces = false;
  bool spacePrefix = false;
  bool spacePrefixOnce = false;
  bool spacePrefixSkips = false;
  // Tokens before and after a text, by their name; empty: none.
  std::string before, after;
};

llvm::Expected<JsonPipeline> readPipeline(const ModelSource &source, const Json &root);

} // namespace izhc
