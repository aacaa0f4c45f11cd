// Conversations as JSON, and their prompts.

#include "tools/izh-rt/Chat.h"

#include "tools/izh-rt/Json.h"

namespace izh::rt {

std::string conversationJson(const std::vector<Message> &messages) {
  std::vector<std::string> items;
  for (const Message &message : messages)
    items.push_back(JsonObject().text("role", message.role).text("content", message.content).str());
  return JsonObject().add("messages", jsonList(items)).add("add_generation_prompt", "true").str();
}

bool renderPrompt(const izh_model *model, const std::string &context, std::string *out) {
  izh_error error = {};
  size_t count = 0;
  out->resize(4 * context.size() + 4096);
  for (int round = 0; round < 2; ++round) {
    if (izh_render(model, context.data(), context.size(), out->data(), out->size(), &count,
                   &error) != IZH_OK) {
      failed(error);
      return false;
    }
    bool whole = count <= out->size();
    out->resize(count);
    if (whole)
      return true;
  }
  failed("the chat template gives another prompt each time");
  return false;
}

} // namespace izh::rt
