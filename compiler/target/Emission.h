// From kernel functions to machine code: MLIR's conversions to LLVM, LLVM's
// optimiser and code generator, and lld, all in process.

#pragma once

#include "compiler/target/Target.h"
#include "mlir/Pass/PassManager.h"

namespace izhc {

struct MachineCode {
  std::string triple;   // "x86_64-unknown-linux-gnu"
  std::string cpu;      // as LLVM spells it
  std::string features; // "+avx2,+fma"
  std::string tune;     // the processor to schedule for
  unsigned vectorBits;  // widest vector registers that code should use
  bool unroll = false;  // whether LLVM may unroll loops
};

// Adds the conversions of scf, vector, arith, math and func to the LLVM
// dialect. Ops of own dialects must be gone.
void buildLlvmPasses(mlir::OpPassManager &pm);

// Compiles the functions of `module` (after buildLlvmPasses) to one blob.
// Fails with a diagnostic if the code needs relocations, writable data or a
// function from outside.
llvm::FailureOr<CodeBlob> emitBlob(mlir::ModuleOp module, const MachineCode &machine,
                                   llvm::ArrayRef<std::string> order);
llvm::FailureOr<std::string> emitText(mlir::ModuleOp module, const MachineCode &machine);

} // namespace izhc
