// A model's state along a conversation: what it has read stays, and a new
// prompt is read from where it differs.

#pragma once

#include "tools/izh-rt/Generation.h"

namespace izh::rt {

class ChatSession {
public:
  ChatSession(const izh_model *model, izh_context *context, const GenerationOptions &options,
              const volatile bool &interrupted);
  ~ChatSession();
  // False after a message.
  bool start();

  // Reads `prompt` and generates an answer, whose pieces go to `show` (false:
  // nobody reads). `answer` is its text, `stop` as in Generation. False after
  // a message.
  bool answer(const std::vector<int32_t> &prompt,
              const std::function<bool(const std::string &)> &show, std::string *answer,
              std::string *stop);

private:
  bool restart();
  bool read(const std::vector<int32_t> &prompt);
  bool step(const int32_t *tokens, size_t count, bool output);

  const izh_model *model;
  izh_context *context;
  const GenerationOptions &options;
  const volatile bool &interrupted;
  izh_sequence *sequence = nullptr;
  SamplerPtr sampler;
  std::vector<int32_t> held; // what the sequence has read
  std::vector<float> logits;
  size_t chunk = 1;
};

} // namespace izh::rt
