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
  FuseHeadsOptions heads;
  heads.exact = options.exact;
  heads.cacheBits = options.cacheBits;
  functions.addPass(createFuseHeads(heads));
  functions.addPass(createFuseGate());
  functions.addPass(createFuseScales());
  functions.addPass(createFuseResidualAdd());
  LowerRowsOptions rows;
  rows.cacheBits = options.cacheBits;
  functions.addPass(createLowerRows(rows));
  functions.addPass(mlir::createCSEPass());
  functions.addPass(mlir::createCanonicalizerPass());
}

} // namespace izhc
