// The order of the `pack` stage.

#include "compiler/transforms/pack/Passes.h"
#include "mlir/Transforms/Passes.h"

namespace izhc {

void buildPackPasses(mlir::OpPassManager &manager, const PackOptions &options) {
  mlir::OpPassManager &functions = manager.nest<mlir::func::FuncOp>();
  LowerLmToPackOptions lowering;
  lowering.exact = options.exact;
  functions.addPass(createLowerLmToPack(lowering));
  functions.addPass(createFuseNormQuantize());
  functions.addPass(createFuseRowSelection());
  functions.addPass(createShareQuantize());
  functions.addPass(createFuseHeads());
  functions.addPass(createFuseGate());
  functions.addPass(createFuseScales());
  functions.addPass(createFuseResidualAdd());
  functions.addPass(createLowerRows());
  functions.addPass(mlir::createCSEPass());
  functions.addPass(mlir::createCanonicalizerPass());
}

} // namespace izhc
