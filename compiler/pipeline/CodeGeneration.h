// Machine code of a planned module for several targets, in parallel.

#pragma once

#include "compiler/emit/Artifact.h"
#include "compiler/target/Target.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"
#include <functional>

namespace izhc {

// What to keep of a variant besides its code.
enum class KernelText { None, Ir, Assembly };

struct GeneratedVariant {
  emit::Variant variant;
  std::string text;
};

// One variant a target, in the order of `targets`; every target works on its
// own copy of the module in its own context. `finished` is called once a
// target, from any thread but never twice at a time.
llvm::Expected<std::vector<GeneratedVariant>>
generateCode(mlir::ModuleOp module, llvm::ArrayRef<std::string> kernels,
             llvm::ArrayRef<Target *> targets, unsigned threads, KernelText text,
             const std::function<void(const Target &)> &finished);

} // namespace izhc
