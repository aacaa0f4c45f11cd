// MLIR -> LLVM IR -> object file. The flat blob is made by FlatLink.cpp.

#include "compiler/target/Emission.h"
#include "compiler/target/FlatLink.h"
#include "compiler/target/LoadOrder.h"
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
#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/MachineModuleInfo.h"
#include "llvm/CodeGen/Passes.h"
#include "llvm/CodeGen/TargetPassConfig.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCAsmInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
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
              const llvm::TargetLibraryInfoImpl &library, bool unroll) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  // Kernels are vectorised already; what is left scalar is meant to be.
  tuning.LoopVectorization = false;
  tuning.SLPVectorization = false;
  // So are CPUs' kernels unrolled. LLVM's ways of it take 40 % of its time and
  // leave code of the same speed (Emerald Rapids, AVX-512 and AVX2, 2026-11).
  tuning.LoopUnrolling = unroll;
  llvm::PassBuilder builder(&machine, tuning);
  functions.registerPass([&] { return llvm::TargetLibraryAnalysis(library); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
}

// LLVM's usual way from IR to a file, without its schedulers: both the one
// before and the one after the allocation of registers move loads of weights
// out of the order of their addresses, which costs up to 60 % of the bandwidth
// of memory (measured on Zen 4). False if there is no such way.
bool addCodeGeneration(llvm::legacy::PassManager &passes, llvm::TargetMachine &machine,
                       llvm::CodeGenFileType type, llvm::raw_pwrite_stream &out, LoadOrder &order) {
  llvm::TargetPassConfig *config = machine.createPassConfig(passes);
  for (llvm::AnalysisID scheduler :
       {&llvm::MachineSchedulerID, &llvm::PostMachineSchedulerID, &llvm::PostRASchedulerID})
    config->disablePass(scheduler);
  config->setDisableVerify(true);
  passes.add(config);
  auto *functions = new llvm::MachineModuleInfoWrapperPass(&machine);
  passes.add(functions);
  if (config->addISelPasses())
    return false;
  config->addMachinePasses();
  config->setInitialized();
  passes.add(createLoadOrderCheck(order));
  if (machine.addAsmPrinter(passes, out, nullptr, type, functions->getMMI().getContext()))
    return false;
  passes.add(llvm::createFreeMachineFunctionPass());
  return true;
}

LogicalResult generate(ModuleOp module, const MachineCode &code, llvm::CodeGenFileType type,
                       llvm::raw_pwrite_stream &out) {
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
  optimise(*ir, *machine, library, code.unroll);

  llvm::legacy::PassManager codegen;
  codegen.add(new llvm::TargetLibraryInfoWrapperPass(library));
  LoadOrder order;
  if (!addCodeGeneration(codegen, *machine, type, out, order))
    return module.emitError("LLVM can't write this kind of file for ") << code.triple;
  codegen.run(*ir);
  // Code that is slower than it could be still serves who compiles a model.
  if (!order.complaint.empty())
    module.emitWarning(order.complaint);
  if (type == llvm::CodeGenFileType::AssemblyFile) {
    out << machine->getMCAsmInfo()->getCommentString() << ' ';
    order.complaint.empty() ? out << "loads in order: " << order.compared
                            : out << "loads out of order: " << order.complaint;
    out << '\n';
  }
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
