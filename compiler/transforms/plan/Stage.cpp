// The order of the `plan` stage.

#include "compiler/transforms/plan/Passes.h"

namespace izhc {

void buildPlanPasses(mlir::OpPassManager &manager) {
  manager.addPass(createLowerPackToPlan());
  manager.addPass(createPlanBuffers());
}

} // namespace izhc
