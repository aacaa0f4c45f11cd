// The order of the stages, what each hands to the next, and the progress that
// a user sees.

#include "compiler/pipeline/Compile.h"
#include "compiler/emit/ExportTable.h"
#include "compiler/emit/ReadPlan.h"
#include "compiler/formats/CacheTypes.h"
#include "compiler/import/ModelSource.h"
#include "compiler/models/Model.h"
#include "compiler/pipeline/CodeGeneration.h"
#include "compiler/pipeline/Diagnostics.h"
#include "compiler/pipeline/Stages.h"
#include "compiler/support/Error.h"
#include "compiler/tokenizers/ChatTemplate.h"
#include "compiler/tokenizers/TokenizerKeys.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>
#include <future>

namespace izhc {

llvm::ArrayRef<llvm::StringRef> stageNames() {
  static const llvm::StringRef names[] = {"models", "lm", "pack", "plan", "kernels", "assembly"};
  return names;
}

namespace {

// Shares of the whole that the progress bar gives to what has no count.
constexpr double kAfterPlan = 0.05;
constexpr double kAfterCode = 0.5;

class SourceTensors : public emit::TensorSource {
public:
  explicit SourceTensors(const ModelSource &source) : source(source) {}

  llvm::Expected<emit::SourceTensor> find(llvm::StringRef name) override {
    auto tensor = source.requireTensor(name);
    if (!tensor)
      return tensor.takeError();
    const TensorInfo &info = **tensor;
    if (info.reader)
      return emit::SourceTensor{info.format, {}, info.reader, info.rows(), info.bytes};
    return emit::SourceTensor{info.format, {info.data, size_t(info.bytes)}};
  }

  std::string describe(llvm::StringRef name) const override {
    return llvm::formatv("{0}: tensor {1}", source.fileName(), quote(source.tensorName(name)))
        .str();
  }

  void release(llvm::ArrayRef<uint8_t> bytes) override {
    source.release(bytes.data(), bytes.size());
  }

private:
  const ModelSource &source;
};

class Compilation {
public:
  explicit Compilation(const CompileOptions &options)
      : options(options), started(std::chrono::steady_clock::now()) {}

  llvm::Expected<CompileReport> run() {
    if (llvm::Error error = open())
      return std::move(error);
    if (llvm::Error error = buildPlan())
      return std::move(error);
    if (llvm::Error error = buildVariants())
      return std::move(error);
    if (llvm::Error error = write())
      return std::move(error);
    return std::move(report);
  }

private:
  llvm::Error open() {
    progress("reading", 0);
    auto opened = openForBuilding(options.model);
    if (!opened)
      return opened.takeError();
    source = std::move(*opened);
    report.sourceBytes = source->fileBytes();
    if (!options.quantize.empty()) {
      auto quantized = quantizeSource(std::move(source), options.quantize);
      if (!quantized)
        return quantized.takeError();
      source = std::move(quantized->source);
      report.encodedTwice = quantized->encodedTwice;
    }
    auto chatTemplate = readChatTemplate(*source);
    if (!chatTemplate)
      return chatTemplate.takeError();
    report.facts.chatTemplate = std::move(chatTemplate->text);
    lap("read");
    return llvm::Error::success();
  }

  llvm::Error buildPlan() {
    progress("planning", 0.01);
    DiagnosticCollector diagnostics(&context);
    auto model = buildModel(*source, context, options.context);
    if (!model)
      return model.takeError();
    module = std::move(model->module);
    takeFacts(model->facts);
    printIr("models");
    lap("models");
    for (Stage &stage : irStages(options.exact, options.cacheBits)) {
      if (mlir::failed(stage.run(*module)))
        return makeError("{0}: {1}", source->fileName(),
                         llvm::toString(diagnostics.take(
                             ("internal error: the stage '" + stage.name + "' failed").str())));
      printIr(stage.name);
      lap(stage.name);
    }
    auto plan = emit::readPlan(*module);
    if (mlir::failed(plan))
      return diagnostics.take("internal error: the plan can't be read");
    report.plan = std::move(*plan);
    return llvm::Error::success();
  }

  llvm::Error buildVariants() {
    progress("generating code", kAfterPlan);
    // Reads the whole file, so it runs beside all that follows.
    hash = std::async(std::launch::async, [this] { return source->hash(); });
    KernelText text = options.printIrAfter == "kernels"    ? KernelText::Ir
                      : options.printIrAfter == "assembly" ? KernelText::Assembly
                                                           : KernelText::None;
    size_t done = 0;
    auto generated =
        generateCode(*module, report.plan.kernels, options.targets, options.threads, text,
                     [&](const Target &target) {
                       double share = double(++done) / options.targets.size();
                       progress("generating code", kAfterPlan + (kAfterCode - kAfterPlan) * share);
                     });
    if (!generated)
      return generated.takeError();
    for (GeneratedVariant &one : *generated) {
      if (options.ir)
        *options.ir << one.text;
      report.codeBytes.emplace_back(one.variant.name, one.variant.code.bytes.size());
      variants.push_back(std::move(one.variant));
    }
    lap("code");
    return llvm::Error::success();
  }

  llvm::Error write() {
    SourceTensors tensors(*source);
    emit::Provenance provenance = {
        options.compiler, options.commandLine,
        llvm::sys::path::filename(llvm::StringRef(options.model).rtrim('/')).str(), recipeText(),
        [this] { return hash.get(); }};
    std::vector<uint8_t> gguf = exportTable();
    auto sizes = emit::writeArtifact(options.output,
                                     {report.plan, report.facts, provenance, variants,
                                      options.tokenizer, tensors, options.threads,
                                      [&](uint64_t written, uint64_t total) {
                                        progress("packing weights",
                                                 kAfterCode + (1 - kAfterCode) * written / total);
                                      },
                                      gguf});
    if (!sizes)
      return sizes.takeError();
    report.sizes = *sizes;
    lap("pack and write");
    return llvm::Error::success();
  }

  // Empty where `izhc export` can't write a GGUF file.
  std::vector<uint8_t> exportTable() const {
    std::vector<ExportKey> keys;
    // A folder has its tokenizer in files beside.
    if (source->companion("config.json")) {
      auto made = tokenizerKeys(options.tokenizer, report.facts.chatTemplate);
      if (!made) {
        // Export says why.
        llvm::consumeError(made.takeError());
        return {};
      }
      keys = std::move(*made);
    }
    return emit::buildExportTable(*source, report.plan, keys);
  }

  // For the artifact's provenance.
  std::string recipeText() const {
    std::string text = options.quantize.recipe;
    if (options.quantize.targetBits > 0)
      text = llvm::formatv("{0:f2} bits a weight", options.quantize.targetBits);
    for (const std::string &choice : options.quantize.tensorTypes)
      text += (text.empty() ? "" : " ") + choice;
    if (text.empty())
      text = "as stored";
    if (options.exact)
      text += ", exact";
    if (options.cacheBits != 16)
      text += (", cache " + cacheTypeName(options.cacheBits)).str();
    return text;
  }

  void takeFacts(const ModelFacts &facts) {
    report.facts.architecture = facts.architecture;
    report.facts.name = facts.name;
    report.facts.vocabulary = facts.vocabulary;
    report.facts.context = facts.context;
    report.longest = facts.longest;
    report.facts.embedding = facts.embedding;
    report.facts.layers = facts.layers;
    report.facts.parameters = facts.parameters;
  }

  void printIr(llvm::StringRef stage) {
    if (options.ir && options.printIrAfter == stage)
      *options.ir << *module << "\n";
  }

  void progress(llvm::StringRef what, double share) {
    if (options.progress)
      options.progress(what, share);
  }

  void lap(llvm::StringRef what) {
    auto now = std::chrono::steady_clock::now();
    report.seconds.emplace_back(what.str(), std::chrono::duration<double>(now - started).count());
    started = now;
  }

  const CompileOptions &options;
  std::chrono::steady_clock::time_point started;
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  std::unique_ptr<ModelSource> source;
  std::future<std::string> hash;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<emit::Variant> variants;
  CompileReport report;
};

} // namespace

llvm::Expected<CompileReport> compileModel(const CompileOptions &options) {
  return Compilation(options).run();
}

} // namespace izhc
