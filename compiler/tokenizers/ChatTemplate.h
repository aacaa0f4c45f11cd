// The chat template of a model, from GGUF's metadata or from the files of a
// folder. Its language is the runtime's matter.

#pragma once

#include "compiler/import/ModelSource.h"

namespace izhc {

struct ChatTemplate {
  // Empty: the model has none.
  std::string text;
  // What the template knows as bos_token and eos_token, where the model says.
  std::optional<std::string> bosToken, eosToken;
};

llvm::Expected<ChatTemplate> readChatTemplate(const ModelSource &source);

} // namespace izhc
