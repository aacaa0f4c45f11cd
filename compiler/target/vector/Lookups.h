// Lowering of `pack.lookup`, shared by the machines.

#pragma once

#include "compiler/target/KernelBuilder.h"
#include "dialects/pack/Pack.h"

namespace izhc {

// Replaces every `pack.lookup` of the module by what `shuffle` makes of the
// indices and of the table, repeated to the indices' width; where it is null,
// by selections bit for bit, which every machine has.
void replaceLookups(
    mlir::ModuleOp module,
    llvm::function_ref<mlir::Value(KernelBuilder &, mlir::Value table, mlir::Value indices)>
        shuffle);

} // namespace izhc
