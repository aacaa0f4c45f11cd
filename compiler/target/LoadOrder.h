// A self-check of machine code: the loads of a stream in an inner loop lie in
// the order of their addresses. A scheduler that moves them costs up to 60 % of
// the bandwidth of memory, and nothing else would tell.

#pragma once

#include "compiler/target/KernelBuilder.h"
#include <string>

namespace llvm {
class MachineFunctionPass;
} // namespace llvm

namespace izhc {

// A load of stream number `stream` of its loop.
mlir::Value loadStream(KernelBuilder &k, mlir::Type type, mlir::Value pointer, unsigned align,
                       int64_t stream = 0);

struct LoadOrder {
  // Loads that were compared with an earlier one of their loop.
  unsigned compared = 0;
  // A sentence for the first load that lies four cache lines or more before one
  // that is issued earlier; empty if there is none.
  std::string complaint;
};

// A pass for the end of code generation; `result` has to outlive it.
llvm::MachineFunctionPass *createLoadOrderCheck(LoadOrder &result);

} // namespace izhc
