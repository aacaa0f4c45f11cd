// MLIR -> LLVM IR -> object file. The flat blob is made by FlatLink.cpp.

#include "compiler/target/Emission.h"
#include "compiler/target/FlatLink.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVMPass.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Target/TargetMachine.h"
#include <mutex>
#include <shared_mutex>

namespace izhc {

using namespace mlir;

void buildLlvmPasses(OpPassManager &pm) {
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(createConvertVectorToLLVMPass());
  pm.addPass(createConvertMathToLLVMPass());
  pm.addPass(createArithToLLVMConversionPass());
  pm.addPass(createConvertFuncToLLVMPass());
  pm.addPass(createConvertControlFlowToLLVMPass());
  pm.addPass(createUBToLLVMConversionPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
}

namespace {

// LLVM's options are global. Code generation reads them; lld sets all of them
// back to their defaults whenever it runs, which has to keep out the others.
std::shared_mutex optionsMutex;

// LLVM's machine scheduler moves weight loads out of address order, which
// costs up to 60 % of the bandwidth of memory (lab measurement, Zen 4). The
// caller holds optionsMutex alone.
void keepLoadsInOrder() {
  auto &options = llvm::cl::getRegisteredOptions();
  auto found = options.find("enable-misched");
  if (found != options.end() && found->second->getNumOccurrences() == 0)
    found->second->addOccurrence(0, "enable-misched", "false");
}

void setFunctionAttributes(llvm::Module &module, const MachineCode &code) {
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", code.cpu);
    function.addFnAttr("tune-cpu", code.tune);
    if (!code.features.empty())
      function.addFnAttr("target-features", code.features);
    function.addFnAttr("prefer-vector-width", std::to_string(code.vectorBits));
    function.addFnAttr("no-builtins");
    function.addFnAttr(llvm::Attribute::NoUnwind);
  }
}

void optimise(llvm::Module &module, llvm::TargetMachine &machine,
              const llvm::TargetLibraryInfoImpl &library) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  // Kernels are vectorised already; what is left scalar is meant to be.
  tuning.LoopVectorization = false;
  tuning.SLPVectorization = false;
  llvm::PassBuilder builder(&machine, tuning);
  functions.registerPass([&] { return llvm::TargetLibraryAnalysis(library); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
}

LogicalResult generate(ModuleOp module, const MachineCode &code, llvm::CodeGenFileType type,
                       llvm::raw_pwrite_stream &out) {
  {
    std::unique_lock<std::shared_mutex> alone(optionsMutex);
    keepLoadsInOrder();
  }
  std::shared_lock<std::shared_mutex> lock(optionsMutex);
  registerBuiltinDialectTranslation(*module.getContext());
  registerLLVMDialectTranslation(*module.getContext());
  llvm::LLVMContext context;
  auto ir = translateModuleToLLVMIR(module, context);
  if (!ir)
    return module.emitError("translation to LLVM IR failed");

  std::string error;
  llvm::Triple triple(code.triple);
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return module.emitError("LLVM has no code generator for ") << code.triple << ": " << error;
  std::unique_ptr<llvm::TargetMachine> machine(
      target->createTargetMachine(triple, code.cpu, code.features, {}, llvm::Reloc::PIC_, {},
                                  llvm::CodeGenOptLevel::Aggressive));
  ir->setTargetTriple(triple);
  ir->setDataLayout(machine->createDataLayout());
  setFunctionAttributes(*ir, code);
  // No library functions: loops must not turn into calls of memset or memcpy.
  llvm::TargetLibraryInfoImpl library(triple);
  library.disableAllFunctions();
  optimise(*ir, *machine, library);

  llvm::legacy::PassManager codegen;
  codegen.add(new llvm::TargetLibraryInfoWrapperPass(library));
  if (machine->addPassesToEmitFile(codegen, out, nullptr, type))
    return module.emitError("LLVM can't write this kind of file for ") << code.triple;
  codegen.run(*ir);
  return success();
}

} // namespace

llvm::FailureOr<CodeBlob> emitBlob(ModuleOp module, const MachineCode &code,
                                   llvm::ArrayRef<std::string> order) {
  llvm::SmallVector<char, 0> object;
  llvm::raw_svector_ostream out(object);
  if (failed(generate(module, code, llvm::CodeGenFileType::ObjectFile, out)))
    return failure();
  std::unique_lock<std::shared_mutex> alone(optionsMutex);
  auto blob = linkFlat({object.data(), object.size()}, order);
  keepLoadsInOrder();
  alone.unlock();
  if (!blob) {
    module.emitError("kernel code: ") << llvm::toString(blob.takeError());
    return failure();
  }
  return std::move(*blob);
}

llvm::FailureOr<std::string> emitText(ModuleOp module, const MachineCode &code) {
  llvm::SmallVector<char, 0> text;
  llvm::raw_svector_ostream out(text);
  if (failed(generate(module, code, llvm::CodeGenFileType::AssemblyFile, out)))
    return failure();
  return std::string(text.data(), text.size());
}

} // namespace izhc
