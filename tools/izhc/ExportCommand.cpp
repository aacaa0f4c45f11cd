// `izhc export`: the weights of an artifact as a GGUF file.

#include "compiler/emit/ExportGguf.h"
#include "compiler/support/Error.h"
#include "compiler/tokenizers/TokenizerKeys.h"
#include "runtime/schema/artifact_generated.h"
#include "runtime/text/tokenizer_view.h"
#include "tools/izhc/Commands.h"
#include "tools/izhc/Inspect.h"
#include "tools/izhc/Report.h"

namespace izhc::tool {

// What is in the way if a folder's artifact has no keys for export: most often its
// tokenizer. Success if it is not that.
static llvm::Error tokenizerProblem(const izh::schema::Artifact &artifact,
                                    llvm::ArrayRef<uint8_t> file) {
  const izh::schema::Section *keys = artifact.gguf_section(), *found = artifact.tokenizer_section();
  if ((keys && keys->size() != 0) || !found || found->offset() > file.size() ||
      found->size() > file.size() - found->offset())
    return llvm::Error::success();
  llvm::ArrayRef<uint8_t> section = file.slice(found->offset(), found->size());
  izh::TokenizerView view;
  izh::PatternList patterns;
  // Sections lie at multiples of their alignment in a mapped file.
  if (izh::view_tokenizer(section.data(), section.size(), &view, &patterns, nullptr) != IZH_OK)
    return llvm::Error::success();
  auto made = tokenizerKeys(section, "");
  if (made)
    return llvm::Error::success();
  return makeError("it was compiled from a folder whose tokenizer {0}, which GGUF files can't say; "
                   "compile a GGUF file of the model to get one back",
                   llvm::toString(made.takeError()));
}

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
  if (llvm::Error error = tokenizerProblem(**root, (*file)->bytes()))
    return makeError("{0}: {1}", arguments.file, llvm::toString(std::move(error)));
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
