// `izh-rt render`: the prompt that the model's chat template makes.

#include "tools/izh-rt/Chat.h"
#include "tools/izh-rt/Commands.h"

#include <cerrno>
#include <cstdio>

namespace izh::rt {

int renderCommand(int count, char **words) {
  ModelOptions options;
  std::string contextFile, context, text;
  Arguments arguments("izh-rt render", "Prints the prompt that the chat template makes.");
  declareModel(arguments, options);
  arguments.text("--context", "C.json", &contextFile,
                 "a JSON object with messages, tools, add_generation_prompt and whatever the "
                 "template knows; - for input");
  int status;
  if (!arguments.parse(count, words, &status))
    return status;
  if (contextFile.empty())
    return arguments.misuse("--context C.json is missing");
  ModelPtr model = openModel(options, /*run=*/false);
  if (!model || !readFile(contextFile, &context) || !renderPrompt(model.get(), context, &text))
    return kFailed;
  if (fwrite(text.data(), 1, text.size(), stdout) != text.size())
    return cannotPrint();
  return kDone;
}

} // namespace izh::rt
