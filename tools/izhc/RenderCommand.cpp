// `izhc render`: the prompt that a chat template makes, from a template's own
// file or from a model, with the runtime's own code.

#include "compiler/import/ModelSource.h"
#include "compiler/support/Error.h"
#include "compiler/tokenizers/ChatTemplate.h"
#include "runtime/platform/process.h"
#include "runtime/text/jinja/render.h"
#include "tools/izhc/InputText.h"
#include "tools/izhc/ModelPath.h"
#include "tools/izhc/Report.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

namespace izhc::tool {
namespace {

llvm::Expected<ChatTemplate> findTemplate(llvm::StringRef path) {
  if (llvm::Error error = checkModelPath(path, "izh-rt render"))
    return std::move(error);
  bool isModel = llvm::sys::fs::is_directory(path) || path.ends_with(".gguf");
  if (!isModel) {
    auto text = readText(path);
    if (!text)
      return text.takeError();
    return ChatTemplate{std::move(*text), std::nullopt, std::nullopt};
  }
  izh::process_reads(path.str().c_str());
  auto source = openModel(path);
  if (!source)
    return source.takeError();
  auto found = readChatTemplate(**source);
  if (found && found->text.empty())
    return makeError("{0} has no chat template", path);
  return found;
}

izh::jinja::Text view(const std::string &text) { return {text.data(), text.size()}; }

} // namespace

int render(const RenderArguments &arguments) {
  auto found = findTemplate(arguments.model);
  if (!found)
    return report(found.takeError());
  auto context = readText(arguments.context);
  if (!context)
    return report(context.takeError());
  if (found->text.size() > UINT32_MAX || context->size() > UINT32_MAX)
    return report(makeError("{0}: templates and contexts of 4 GB and more can't be rendered",
                            arguments.model));
  izh::jinja::RenderInput input = {view(found->text), view(*context)};
  if (found->bosToken)
    input.bos_token = view(*found->bosToken);
  if (found->eosToken)
    input.eos_token = view(*found->eosToken);
  izh::Array<char> prompt;
  izh_error error = {};
  if (izh::jinja::render(input, {}, &prompt, &error) != IZH_OK)
    return report(makeError("{0}: {1}", arguments.model, error.message));
  llvm::outs() << llvm::StringRef(prompt.data(), prompt.size());
  return kDone;
}

} // namespace izhc::tool
