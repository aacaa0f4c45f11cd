// `izhc calibrate`: what the inputs of each matrix are like on a text, for
// quantization that spares the columns that matter.

#include "compiler/support/Error.h"
#include "tools/izhc/InputText.h"
#include "tools/izhc/Probes.h"
#include "tools/izhc/Report.h"
#include "tools/izhc/RunnableModel.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>

namespace izhc::tool {

// Windows of tokens, each from an empty cache. Logits of all are asked for, so
// that no layer leaves rows out.
static llvm::Error runText(RunnableModel &model, llvm::ArrayRef<int32_t> tokens, size_t window) {
  std::vector<float> logits;
  size_t step = std::max(model.info().max_step_tokens, 1u);
  ProgressBar bar;
  for (size_t begin = 0; begin < tokens.size(); begin += window) {
    bar.show("calibrating", double(begin) / tokens.size());
    if (llvm::Error error = model.restart())
      return error;
    llvm::ArrayRef<int32_t> rest = tokens.slice(begin, std::min(window, tokens.size() - begin));
    while (!rest.empty()) {
      llvm::ArrayRef<int32_t> piece = rest.take_front(step);
      logits.resize(piece.size() * model.info().vocabulary);
      if (llvm::Error error = model.run(piece, piece.size(), logits))
        return error;
      rest = rest.drop_front(piece.size());
    }
  }
  return llvm::Error::success();
}

static llvm::Error run(const CalibrateArguments &arguments) {
  auto model = RunnableModel::open(arguments.model, {/*exact=*/true, /*threads=*/1});
  if (!model)
    return model.takeError();
  auto text = readText(arguments.textFile);
  if (!text)
    return text.takeError();
  auto tokens = (*model)->tokenize(*text);
  if (!tokens)
    return tokens.takeError();
  size_t window = std::min<size_t>(512, std::max<size_t>((*model)->info().context, 1));
  if (tokens->size() < 2)
    return makeError("'{0}' has {1} tokens, but a text to calibrate with is expected",
                     arguments.textFile, tokens->size());
  if (llvm::Error error = (*model)->prepare(window))
    return error;
  auto probes = Probes::watch((*model)->running());
  if (llvm::Error error = runText(**model, *tokens, window))
    return error;
  std::vector<ImportanceSums> sums = probes->sums();
  if (sums.empty())
    return makeError("{0}: none of its products has float32 activations; calibrate the .gguf file "
                     "or the folder, or an artifact that was compiled with --exact",
                     arguments.model);
  uint32_t chunks = (tokens->size() + window - 1) / window;
  if (llvm::Error error = writeImportance(
          arguments.output, sums, llvm::sys::path::filename(arguments.textFile), chunks, window))
    return makeError("cannot write {0}: {1}", arguments.output, llvm::toString(std::move(error)));
  llvm::errs() << llvm::formatv("{0}: {1} matrices, {2} tokens\n", arguments.output, sums.size(),
                                tokens->size());
  return llvm::Error::success();
}

int calibrate(const CalibrateArguments &arguments) {
  if (llvm::Error error = checkOutput({arguments.model, arguments.textFile}, arguments.output))
    return report(std::move(error), kWrongUsage);
  if (llvm::Error error = run(arguments))
    return report(std::move(error));
  return kDone;
}

} // namespace izhc::tool
