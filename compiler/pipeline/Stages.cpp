// One pass manager a stage, so that the IR can be looked at between them.

#include "compiler/pipeline/Stages.h"
#include "compiler/transforms/lm/Passes.h"
#include "compiler/transforms/pack/Passes.h"
#include "compiler/transforms/plan/Passes.h"
#include "mlir/Pass/PassManager.h"

namespace izhc {

static Stage stage(llvm::StringRef name, std::function<void(mlir::OpPassManager &)> build) {
  return {name, [build](mlir::ModuleOp module) {
            mlir::PassManager manager(module.getContext());
            build(manager);
            return manager.run(module);
          }};
}

std::vector<Stage> irStages(bool exact, int64_t cacheBits) {
  return {
      stage("lm", [](mlir::OpPassManager &manager) { buildLmPasses(manager); }),
      stage("pack",
            [=](mlir::OpPassManager &manager) { buildPackPasses(manager, {exact, cacheBits}); }),
      stage("plan", [](mlir::OpPassManager &manager) { buildPlanPasses(manager); }),
  };
}

} // namespace izhc
