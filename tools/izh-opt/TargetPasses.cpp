// Makes a pass of each step that a Target does.

#include "tools/izh-opt/TargetPasses.h"
#include "compiler/target/Target.h"
#include "dialects/pack/Pack.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassRegistry.h"

namespace izhc {

using namespace mlir;

namespace {

template <typename Derived> struct TargetPass : PassWrapper<Derived, OperationPass<ModuleOp>> {
  TargetPass() = default;
  TargetPass(const TargetPass &other) : PassWrapper<Derived, OperationPass<ModuleOp>>(other) {}

  Pass::Option<std::string> target{*this, "target", llvm::cl::desc("a name of `izhc targets`")};

  void getDependentDialects(DialectRegistry &registry) const override {
    registry
        .insert<arith::ArithDialect, cf::ControlFlowDialect, func::FuncDialect, LLVM::LLVMDialect,
                math::MathDialect, scf::SCFDialect, vector::VectorDialect, pack::PackDialect>();
  }

  std::unique_ptr<Target> find() {
    for (auto &candidate : allTargets())
      if (candidate->name() == target)
        return std::move(candidate);
    this->getOperation().emitError("there is no target '") << target << "'";
    this->signalPassFailure();
    return nullptr;
  }
};

struct LowerKernels : TargetPass<LowerKernels> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LowerKernels)
  llvm::StringRef getArgument() const override { return "izh-lower-kernels"; }
  llvm::StringRef getDescription() const override { return "turn kernels into LLVM functions"; }
  void runOnOperation() override {
    auto found = find();
    if (found && failed(found->lowerKernels(getOperation())))
      signalPassFailure();
  }
};

struct PrintAssembly : TargetPass<PrintAssembly> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(PrintAssembly)
  llvm::StringRef getArgument() const override { return "izh-print-assembly"; }
  llvm::StringRef getDescription() const override { return "print kernels as assembly"; }
  void runOnOperation() override {
    auto found = find();
    if (!found)
      return;
    if (failed(found->lowerKernels(getOperation())))
      return signalPassFailure();
    auto text = found->emitAssembly(getOperation());
    if (failed(text))
      return signalPassFailure();
    llvm::outs() << *text;
    for (Operation &op : llvm::make_early_inc_range(getOperation().getOps()))
      op.erase();
  }
};

} // namespace

void registerTargetPasses() {
  PassRegistration<LowerKernels>();
  PassRegistration<PrintAssembly>();
}

} // namespace izhc
