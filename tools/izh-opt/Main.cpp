// izh-opt: runs single passes on IR given as text, for tests and for people.
// Has all passes of compiler/transforms, the stages of izhc as pipelines
// (--izh-stage-lm, -pack, -plan) and the targets' code generation.

#include "compiler/transforms/lm/Passes.h"
#include "compiler/transforms/pack/Passes.h"
#include "compiler/transforms/plan/Passes.h"
#include "dialects/lm/Lm.h"
#include "dialects/pack/Pack.h"
#include "dialects/plan/Plan.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "tools/izh-opt/TargetPasses.h"

static void registerStages() {
  mlir::PassPipelineRegistration<>("izh-stage-lm", "all passes on lm", izhc::buildLmPasses);
  mlir::PassPipelineRegistration<>(
      "izh-stage-pack", "from lm to pack",
      [](mlir::OpPassManager &manager) { izhc::buildPackPasses(manager, {}); });
  mlir::PassPipelineRegistration<>("izh-stage-plan", "from pack to plan", izhc::buildPlanPasses);
}

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<izhc::lm::LmDialect, izhc::pack::PackDialect, izhc::plan::PlanDialect,
                  mlir::arith::ArithDialect, mlir::cf::ControlFlowDialect, mlir::func::FuncDialect,
                  mlir::LLVM::LLVMDialect, mlir::math::MathDialect, mlir::scf::SCFDialect,
                  mlir::vector::VectorDialect>();
  izhc::registerLmPasses();
  izhc::registerPackPasses();
  izhc::registerPlanPasses();
  registerStages();
  izhc::registerTargetPasses();
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "izh-opt: runs passes of the izh compiler\n", registry));
}
