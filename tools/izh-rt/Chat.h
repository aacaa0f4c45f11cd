// A conversation: its messages as the JSON that chat templates read, and the
// prompt that they make of it.

#pragma once

#include "tools/izh-rt/Model.h"

#include <string>
#include <vector>

namespace izh::rt {

struct Message {
  std::string role, content;
};

// {"messages": [...], "add_generation_prompt": true}
std::string conversationJson(const std::vector<Message> &messages);

// The prompt of a context in JSON. False after a message.
bool renderPrompt(const izh_model *model, const std::string &context, std::string *out);

} // namespace izh::rt
