// `izhc export`: the weights of an artifact as a GGUF file.

#include "compiler/emit/ExportGguf.h"
#include "compiler/support/Error.h"
#include "tools/izhc/Commands.h"
#include "tools/izhc/Inspect.h"
#include "tools/izhc/Report.h"

namespace izhc::tool {

static llvm::Error run(const ExportArguments &arguments) {
  llvm::Expected<std::unique_ptr<MappedFile>> file = MappedFile::open(arguments.file);
  if (!file)
    return file.takeError();
  if (!isArtifact((*file)->bytes()))
    return makeError("{0}: this is no .izh file; export takes what 'izhc compile' has written",
                     arguments.file);
  auto root = readRoot(**file);
  if (!root)
    return root.takeError();
  if (llvm::Error error = emit::exportGguf(**root, (*file)->bytes(), arguments.output))
    return makeError("{0}: {1}", arguments.file, llvm::toString(std::move(error)));
  return llvm::Error::success();
}

int exportModel(const ExportArguments &arguments) {
  if (llvm::Error error = checkOutput({arguments.file}, arguments.output))
    return report(std::move(error), kWrongUsage);
  if (llvm::Error error = run(arguments))
    return report(std::move(error));
  return kDone;
}

} // namespace izhc::tool
