// The order of the `lm` stage.

#include "compiler/transforms/lm/Passes.h"
#include "mlir/Transforms/Passes.h"

namespace izhc {

void buildLmPasses(mlir::OpPassManager &manager) {
  mlir::OpPassManager &functions = manager.nest<mlir::func::FuncOp>();
  functions.addPass(mlir::createCanonicalizerPass());
  functions.addPass(createSelectRowsEarly());
  functions.addPass(createMergeProjections());
  functions.addPass(mlir::createCSEPass());
}

} // namespace izhc
