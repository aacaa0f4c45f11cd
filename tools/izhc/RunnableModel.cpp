// Compiles where that is needed, then speaks the runtime's C API.

#include "tools/izhc/RunnableModel.h"
#include "compiler/pipeline/Compile.h"
#include "compiler/pipeline/TargetChoice.h"
#include "compiler/support/Error.h"
#include "compiler/support/MappedFile.h"
#include "runtime/platform/cpu.h"
#include "runtime/platform/process.h"
#include "tools/izhc/Inspect.h"
#include "tools/izhc/Report.h"
#include "tools/izhc/TokenizerCheck.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/Threading.h"
#include <mutex>

namespace izhc::tool {

namespace fs = llvm::sys::fs;

namespace {

// A file's name that is free again when this ends.
class TemporaryFile {
public:
  ~TemporaryFile() {
    if (name.empty())
      return;
    fs::remove(name);
    llvm::sys::DontRemoveFileOnSignal(name);
  }

  llvm::Error create() {
    llvm::SmallString<128> made;
    if (std::error_code code = fs::createTemporaryFile("izhc", "izh", made))
      return makeError("cannot make a temporary file: {0}: point TMPDIR at a folder with room",
                       code.message());
    name = made.str().str();
    llvm::sys::RemoveFileOnSignal(name);
    return llvm::Error::success();
  }

  std::string name;
};

llvm::Error fromRuntime(llvm::StringRef path, const izh_error &error) {
  // Most of the runtime's sentences name the file already.
  llvm::StringRef message = error.message;
  if (message.contains(path))
    return makeError("{0}", message);
  return makeError("{0}: {1}", path, message);
}

llvm::Expected<bool> holdsArtifact(llvm::StringRef path) {
  if (fs::is_directory(path))
    return false;
  auto mapped = MappedFile::open(path);
  if (!mapped)
    return mapped.takeError();
  return isArtifact((*mapped)->bytes());
}

} // namespace

std::string RunnableModel::name() const {
  llvm::StringRef path = file;
  return llvm::sys::path::filename(path.rtrim('/')).str();
}

llvm::Expected<std::unique_ptr<RunnableModel>> RunnableModel::open(llvm::StringRef path,
                                                                   const RunOptions &options) {
  std::unique_ptr<RunnableModel> opened(new RunnableModel(path));
  opened->threads = options.threads;
  izh::process_reads(opened->file.c_str());
  auto artifact = holdsArtifact(path);
  if (!artifact)
    return artifact.takeError();
  if (llvm::Error error =
          *artifact ? opened->openArtifact(opened->file) : opened->compileAndOpen(options))
    return std::move(error);
  return std::move(opened);
}

llvm::Error RunnableModel::compileAndOpen(const RunOptions &options) {
  auto targets = chooseTargets(allTargets(), "native", {izh::cpu_arch(), izh::cpu_features()});
  if (!targets)
    return targets.takeError();
  TemporaryFile artifact;
  if (llvm::Error error = artifact.create())
    return error;
  CompileOptions compile;
  compile.model = file;
  compile.output = artifact.name;
  for (auto &target : *targets)
    compile.targets.push_back(target.get());
  compile.exact = options.exact;
  compile.compiler = "izhc " IZH_VERSION;
  compile.threads = llvm::hardware_concurrency().compute_thread_count();
  ProgressBar bar;
  std::mutex mutex;
  compile.progress = [&](llvm::StringRef what, double share) {
    std::lock_guard<std::mutex> lock(mutex);
    bar.show(what, share);
  };
  auto tokenizer = makeCheckedTokenizer(file, "");
  if (!tokenizer)
    return tokenizer.takeError();
  compile.tokenizer = std::move(tokenizer->section);
  auto result = compileModel(compile);
  if (!result)
    return result.takeError();
  // The runtime keeps it mapped after the name is gone.
  return openArtifact(artifact.name);
}

llvm::Error RunnableModel::openArtifact(const std::string &path) {
  izh_error error = {};
  izh_model *opened = nullptr;
  if (izh_model_open(path.c_str(), nullptr, &opened, &error) != IZH_OK)
    return fromRuntime(file, error);
  model.reset(opened);
  izh_model_get_info(opened, &facts);
  return llvm::Error::success();
}

llvm::Expected<std::vector<int32_t>> RunnableModel::tokenize(llvm::StringRef text) const {
  if (!facts.has_tokenizer)
    return makeError("{0} has no tokenizer, so it can't read a text", file);
  izh_tokenize_options options = {true, false};
  // Few texts have more tokens than bytes and a few.
  std::vector<int32_t> ids(text.size() + 16);
  for (;;) {
    size_t count = 0;
    izh_error error = {};
    if (izh_tokenize(model.get(), text.data(), text.size(), &options, ids.data(), ids.size(),
                     &count, &error) != IZH_OK)
      return fromRuntime(file, error);
    bool whole = count <= ids.size();
    ids.resize(count);
    if (whole)
      return std::move(ids);
  }
}

llvm::Error RunnableModel::prepare(uint32_t tokens) {
  izh_context_options options = {};
  options.threads = threads;
  options.tokens = tokens;
  options.sequences = 1;
  izh_context *made = nullptr;
  izh_error error = {};
  if (izh_context_create(model.get(), &options, &made, &error) != IZH_OK)
    return fromRuntime(file, error);
  context.reset(made);
  return llvm::Error::success();
}

llvm::Error RunnableModel::restart() {
  sequence.reset();
  izh_sequence *made = nullptr;
  izh_error error = {};
  if (izh_sequence_create(context.get(), &made, &error) != IZH_OK)
    return fromRuntime(file, error);
  sequence.reset(made);
  return llvm::Error::success();
}

llvm::Error RunnableModel::run(llvm::ArrayRef<int32_t> tokens, uint32_t outputs,
                               llvm::MutableArrayRef<float> logits) {
  assert(logits.size() >= size_t(outputs) * facts.vocabulary);
  izh_input input = {sequence.get(), tokens.data(), uint32_t(tokens.size()), outputs};
  izh_error error = {};
  if (izh_context_run(context.get(), &input, 1, logits.data(), &error) != IZH_OK)
    return fromRuntime(file, error);
  return llvm::Error::success();
}

} // namespace izhc::tool
