// Where models keep their chat template. Of several named ones, "default" is
// the one for conversations.

#include "compiler/tokenizers/ChatTemplate.h"

#include "compiler/import/JsonSource.h"
#include "compiler/support/Error.h"
#include "compiler/support/Json.h"

using namespace izhc;

namespace {

llvm::Expected<std::optional<std::string>> tokenText(const ModelSource &source, const char *key) {
  auto id = source.getUInt(key);
  if (!id)
    return id.takeError();
  if (!*id)
    return std::nullopt;
  auto texts = source.getStringArray("tokenizer.ggml.tokens");
  if (!texts)
    return texts.takeError();
  if (!*texts || **id >= (*texts)->size())
    return std::nullopt;
  return (**texts)[**id].str();
}

llvm::Expected<ChatTemplate> fromMetadata(const ModelSource &source) {
  ChatTemplate found;
  auto text = source.getString("tokenizer.chat_template");
  if (!text)
    return text.takeError();
  found.text = text->value_or("").str();
  auto bos = tokenText(source, "tokenizer.ggml.bos_token_id");
  if (!bos)
    return bos.takeError();
  auto eos = tokenText(source, "tokenizer.ggml.eos_token_id");
  if (!eos)
    return eos.takeError();
  found.bosToken = std::move(*bos);
  found.eosToken = std::move(*eos);
  return std::move(found);
}

// A string, or the `content` of an added token.
std::optional<std::string> tokenOf(const Json *value) {
  if (value && value->isObject())
    value = value->find("content");
  auto text = value ? value->asString() : std::nullopt;
  return text ? std::optional<std::string>(text->str()) : std::nullopt;
}

// The template in the value of "chat_template": a string or a list of named ones.
std::string templateOf(const Json *value) {
  if (!value)
    return "";
  if (auto text = value->asString())
    return text->str();
  for (const Json &one : value->items()) {
    const Json *name = one.find("name"), *text = one.find("template");
    if (name && text && name->asString() == llvm::StringRef("default"))
      return text->asString().value_or("").str();
  }
  return "";
}

llvm::Expected<Json> parseCompanion(const ModelSource &source, llvm::StringRef name) {
  auto bytes = source.companion(name);
  if (!bytes)
    return Json();
  return parseJson((source.fileName() + "/" + name).str(), *bytes);
}

// Checks the kinds of what is read below: tokens are texts or objects, templates
// texts or lists.
llvm::Error checkKinds(const std::string &file, const Json &json) {
  for (auto [key, other, expected] : {std::tuple("bos_token", Json::Kind::Object, "an object"),
                                      {"eos_token", Json::Kind::Object, "an object"},
                                      {"chat_template", Json::Kind::Array, "a list"}}) {
    const Json *value = json.find(key);
    if (value && !value->isNull() && !value->asString() && value->kind() != other)
      return makeError("{0}: {1} is {2}, expected a string or {3}; correct the file, or fetch it "
                       "again",
                       file, quote(key), jsonText(*value), expected);
  }
  return llvm::Error::success();
}

} // namespace

llvm::Expected<ChatTemplate> izhc::readChatTemplate(const ModelSource &source) {
  if (!source.companion("config.json"))
    return fromMetadata(source);
  ChatTemplate found;
  if (auto bytes = source.companion("chat_template.jinja"))
    found.text.assign(bytes->begin(), bytes->end());
  for (llvm::StringRef name :
       {"tokenizer_config.json", "chat_template.json", "special_tokens_map.json"}) {
    auto json = parseCompanion(source, name);
    if (!json)
      return json.takeError();
    if (llvm::Error error = checkKinds((source.fileName() + "/" + name).str(), *json))
      return std::move(error);
    if (found.text.empty())
      found.text = templateOf(json->find("chat_template"));
    if (!found.bosToken)
      found.bosToken = tokenOf(json->find("bos_token"));
    if (!found.eosToken)
      found.eosToken = tokenOf(json->find("eos_token"));
  }
  return std::move(found);
}
