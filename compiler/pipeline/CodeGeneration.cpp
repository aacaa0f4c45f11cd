// MLIR contexts are not shared between threads: the module travels to each
// target's own context as bytecode.

#include "compiler/pipeline/CodeGeneration.h"
#include "compiler/pipeline/Diagnostics.h"
#include "compiler/support/Error.h"
#include "dialects/pack/Pack.h"
#include "dialects/plan/Plan.h"
#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/ThreadPool.h"
#include <mutex>

namespace izhc {
namespace {

// The kernels and what runs them, as bytecode.
llvm::Expected<std::string> serializeKernels(mlir::ModuleOp module) {
  mlir::OwningOpRef<mlir::ModuleOp> kernels = module.clone();
  for (mlir::Operation &op : llvm::make_early_inc_range(*kernels->getBody()))
    if (!llvm::isa<plan::KernelOp, plan::DispatchOp>(op))
      op.erase();
  std::string bytes;
  llvm::raw_string_ostream out(bytes);
  if (mlir::failed(mlir::writeBytecodeToFile(*kernels, out)))
    return makeError("internal error: the kernels can't be written as bytecode");
  return bytes;
}

class Job {
public:
  Job(Target &target, llvm::ArrayRef<std::string> kernels, KernelText text)
      : target(target), kernels(kernels), text(text) {}

  GeneratedVariant result;
  llvm::Error error = llvm::Error::success();

  void run(llvm::StringRef bytecode) {
    mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
    context.loadDialect<pack::PackDialect, plan::PlanDialect>();
    DiagnosticCollector diagnostics(&context);
    auto module = mlir::parseSourceString<mlir::ModuleOp>(bytecode, &context);
    // The error is still unset here, and must be looked at before it is
    // replaced.
    llvm::consumeError(std::move(error));
    if (module && mlir::succeeded(generate(*module)))
      error = llvm::Error::success();
    else
      error = makeError("target {0}: {1}", target.name(),
                        llvm::toString(diagnostics.take("code generation failed")));
  }

private:
  llvm::LogicalResult generate(mlir::ModuleOp module) {
    if (mlir::failed(target.lowerKernels(module)))
      return mlir::failure();
    if (text == KernelText::Ir) {
      llvm::raw_string_ostream out(result.text);
      out << "// target " << target.name() << "\n" << module << "\n";
    } else if (text == KernelText::Assembly) {
      auto assembly = target.emitAssembly(module);
      if (mlir::failed(assembly))
        return mlir::failure();
      result.text = "# target " + target.name().str() + "\n" + *assembly;
    }
    auto code = target.emit(module, kernels);
    if (mlir::failed(code))
      return mlir::failure();
    if (code->entries.size() != kernels.size())
      return module.emitError("has ")
             << code->entries.size() << " entries for " << kernels.size() << " kernels";
    result.variant = {target.name().str(), target.arch().str(), target.requiredFeatures(),
                      target.rank(), std::move(*code)};
    return mlir::success();
  }

  Target &target;
  llvm::ArrayRef<std::string> kernels;
  KernelText text;
};

} // namespace

llvm::Expected<std::vector<GeneratedVariant>>
generateCode(mlir::ModuleOp module, llvm::ArrayRef<std::string> kernels,
             llvm::ArrayRef<Target *> targets, unsigned threads, KernelText text,
             const std::function<void(const Target &)> &finished) {
  auto bytecode = serializeKernels(module);
  if (!bytecode)
    return bytecode.takeError();
  std::vector<std::unique_ptr<Job>> jobs;
  for (Target *target : targets)
    jobs.push_back(std::make_unique<Job>(*target, kernels, text));
  std::mutex mutex;
  llvm::DefaultThreadPool pool(llvm::hardware_concurrency(threads));
  // Those with the widest registers, which stand last, take longest.
  for (auto [job, target] : llvm::reverse(llvm::zip_equal(jobs, targets)))
    pool.async([&, job = job.get(), target = target] {
      job->run(*bytecode);
      std::lock_guard<std::mutex> lock(mutex);
      if (finished)
        finished(*target);
    });
  pool.wait();

  llvm::Error errors = llvm::Error::success();
  std::vector<GeneratedVariant> variants;
  for (auto &job : jobs) {
    errors = llvm::joinErrors(std::move(errors), std::move(job->error));
    variants.push_back(std::move(job->result));
  }
  if (errors)
    return std::move(errors);
  return variants;
}

} // namespace izhc
