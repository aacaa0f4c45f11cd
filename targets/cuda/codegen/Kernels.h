// From plan.kernel to functions that a GPU can launch, and the section of the
// artifact that holds their text.

#pragma once

#include "compiler/target/Target.h"
#include "mlir/IR/BuiltinOps.h"

namespace izhc::cuda {

// Replaces every plan.kernel by a kernel of LLVM's dialect with the arguments
// that runtime/schema/device_code.h gives, and adds those of other forms of the
// module's dispatches. `overlaps`: as there.
llvm::LogicalResult replaceKernels(mlir::ModuleOp module, bool overlaps);

// The section for the kernels `order` of a module that replaceKernels has
// treated and whose assembly text is `text`.
llvm::FailureOr<CodeBlob> packCode(mlir::ModuleOp module, llvm::StringRef text,
                                   llvm::ArrayRef<std::string> order);

} // namespace izhc::cuda
