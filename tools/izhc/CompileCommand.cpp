// `izhc compile`: checks what was asked for, runs the pipeline and tells what
// came of it.

#include "compiler/formats/CacheTypes.h"
#include "compiler/formats/Recipes.h"
#include "compiler/pipeline/Compile.h"
#include "compiler/pipeline/TargetChoice.h"
#include "compiler/support/Error.h"
#include "runtime/platform/cpu.h"
#include "runtime/platform/process.h"
#include "tools/izhc/CompileNotes.h"
#include "tools/izhc/ModelPath.h"
#include "tools/izhc/Report.h"
#include "tools/izhc/Roofline.h"
#include "tools/izhc/TokenizerCheck.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Threading.h"
#include "llvm/Support/raw_ostream.h"
#include <map>
#include <mutex>
#include <optional>

namespace izhc::tool {

namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

std::string cacheTypeList() { return cacheTypeNames().str(); }
std::string stageList() { return llvm::join(stageNames(), ", "); }

// model-00001-of-00003.gguf -> model.izh, in the current folder. Dots in the
// name of a model's folder begin no ending.
static std::string defaultOutput(llvm::StringRef model) {
  llvm::SmallString<256> folder;
  if (fs::is_directory(model) && !fs::real_path(model, folder))
    return (path::filename(folder) + ".izh").str();
  llvm::StringRef stem = path::stem(model);
  constexpr size_t kPart = sizeof("-00001-of-00003") - 1;
  if (stem.size() > kPart && stem.substr(stem.size() - kPart).starts_with("-0") &&
      stem.substr(stem.size() - 9, 4) == "-of-")
    stem = stem.drop_back(kPart);
  return (stem + ".izh").str();
}

static llvm::Error checkUsage(const CompileArguments &arguments) {
  if (!arguments.quant.empty())
    if (auto recipe = requireRecipe(arguments.quant); !recipe)
      return recipe.takeError();
  if (!arguments.importance.empty() && arguments.quant.empty() && arguments.tensorTypes.empty() &&
      arguments.targetBits == 0)
    return makeError("--imatrix says what matters when weights are quantized: give --quant too");
  if (!cacheTypeBits(arguments.kv))
    return makeError("--kv: there is no cache of type {0}; known are {1}", quote(arguments.kv),
                     cacheTypeNames());
  if (arguments.emit != "izh")
    return makeError("--emit={0} is not available yet: compile to .izh and run it with izh-rt",
                     arguments.emit);
  if (!arguments.printIrAfter.empty() &&
      !llvm::is_contained(stageNames(), llvm::StringRef(arguments.printIrAfter)))
    return makeError("--print-ir-after: there is no stage {0}; known are {1}",
                     quote(arguments.printIrAfter), stageList());
  return llvm::Error::success();
}

// Code generation comes before the first byte is written, so this is looked at first.
static llvm::Error checkFolder(llvm::StringRef output) {
  llvm::StringRef folder = path::parent_path(output);
  if (!folder.empty() && !fs::is_directory(folder))
    return makeError("cannot write {0}: there is no folder {1}", output, folder);
  return llvm::Error::success();
}

static void printWeights(const CompileReport &report, llvm::raw_ostream &out) {
  std::map<llvm::StringRef, std::pair<unsigned, uint64_t>> formats;
  for (const emit::Weight &weight : report.plan.weights) {
    auto &[count, bytes] = formats[weight.format->name];
    ++count;
    bytes += weight.size;
  }
  for (auto &[name, numbers] : formats)
    out << llvm::formatv("  {0,-20} {1,12}  in {2} matrices\n", name, megabytes(numbers.second),
                         numbers.first);
}

static void printStats(const CompileReport &report, llvm::raw_ostream &out) {
  const emit::ArtifactSizes &sizes = report.sizes;
  auto line = [&](llvm::StringRef what, uint64_t bytes) {
    out << llvm::formatv("  {0,-20} {1,12}\n", what, megabytes(bytes));
  };
  out << "sizes\n";
  line("source", report.sourceBytes);
  line("artifact", sizes.file);
  line("weights", sizes.weights);
  printWeights(report, out);
  line("constants", sizes.constants);
  line("tokenizer", sizes.tokenizer);
  line("keys for export", sizes.gguf);
  line("plan and tables", sizes.root);
  for (auto &[name, bytes] : report.codeBytes)
    line("code " + name, bytes);
  out << "memory of a run\n";
  line("arena", report.plan.arenaBytes);
  line("cache, 1000 tokens", cacheBytesPerToken(report.plan) * 1000);
  if (uint64_t bytes = windowBytes(report.plan))
    line("windows, a sequence", bytes);
  if (uint64_t bytes = stateBytes(report.plan))
    line("states, a sequence", bytes);
  out << llvm::formatv("plan\n  {0} kernels, {1} dispatches a step, at most {2} tokens\n",
                       report.plan.kernels.size(), report.plan.dispatches.size(),
                       report.plan.maxTokens);
  out << "seconds\n";
  for (auto &[stage, seconds] : report.seconds)
    out << llvm::formatv("  {0,-20} {1,12:f3}\n", stage, seconds);
}

int compile(const CompileArguments &arguments) {
  if (llvm::Error error = checkUsage(arguments))
    return report(std::move(error), kWrongUsage);
  std::optional<MachineLimits> machine;
  if (!arguments.machine.empty()) {
    auto limits = parseMachine(arguments.machine);
    if (!limits)
      return report(limits.takeError(), kWrongUsage);
    machine = *limits;
  }
  auto targets =
      chooseTargets(allTargets(), arguments.target, {izh::cpu_arch(), izh::cpu_features()});
  if (!targets)
    return report(targets.takeError(), kWrongUsage);

  CompileOptions options;
  options.model = arguments.model;
  options.output = arguments.output.empty() ? defaultOutput(arguments.model) : arguments.output;
  if (llvm::Error error = checkModelPath(options.model, "izh-rt run"))
    return report(std::move(error));
  if (llvm::Error error = checkOutput({options.model, arguments.importance}, options.output))
    return report(std::move(error), kWrongUsage);
  if (llvm::Error error = checkFolder(options.output))
    return report(std::move(error));
  auto tokenizer = makeCheckedTokenizer(options.model, arguments.preTokenizer);
  if (!tokenizer)
    return report(tokenizer.takeError());
  options.tokenizer = std::move(tokenizer->section);
  for (auto &target : *targets)
    options.targets.push_back(target.get());
  options.exact = arguments.exact;
  options.context = arguments.context;
  options.quantize = {arguments.quant, arguments.tensorTypes, arguments.importance,
                      arguments.targetBits};
  options.cacheBits = *cacheTypeBits(arguments.kv);
  options.printIrAfter = arguments.printIrAfter;
  if (!arguments.printIrAfter.empty())
    options.ir = &llvm::outs();
  options.compiler = "izhc " IZH_VERSION " with LLVM " LLVM_VERSION_STRING;
  options.commandLine = arguments.commandLine;
  options.threads =
      arguments.jobs ? arguments.jobs : llvm::hardware_concurrency().compute_thread_count();
  izh::process_reads(options.model.c_str());
  auto result = [&] {
    ProgressBar bar;
    std::mutex mutex;
    options.progress = [&](llvm::StringRef what, double share) {
      std::lock_guard<std::mutex> lock(mutex);
      bar.show(what, share);
    };
    return compileModel(options);
  }();
  if (!result)
    return report(result.takeError());
  if (arguments.stats) {
    printStats(*result, llvm::outs());
    printRoofline(result->plan, machine ? &*machine : nullptr, llvm::outs());
  }
  noteShorterContext(options, *result, llvm::errs());
  noteVectors(*tokenizer, llvm::errs());
  noteMissingParts(options, *result, llvm::errs());
  noteTemplate(options, *result, llvm::errs());
  noteOtherFormats(options, *result, llvm::errs());
  noteEncodedTwice(options, *result, llvm::errs());
  size_t variants = result->codeBytes.size();
  llvm::errs() << llvm::formatv("{0}: {1}, {2} variant{3}\n", options.output,
                                megabytes(result->sizes.file), variants, variants == 1 ? "" : "s");
  return kDone;
}

int listTargets() {
  HostMachine host = {izh::cpu_arch(), izh::cpu_features()};
  for (auto &target : allTargets()) {
    llvm::outs() << llvm::formatv("{0,-14} {1}{2}{3}\n", target->name(), target->summary(),
                                  target->inDefaultSet() ? ", in the default set" : "",
                                  runsOn(*target, host) ? ", runs here" : "");
  }
  return kDone;
}

} // namespace izhc::tool
