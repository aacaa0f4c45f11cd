// What a code generator is to the rest of the compiler.

#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/LogicalResult.h"
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace izhc {

// Position-independent machine code without relocations or outside calls.
struct CodeBlob {
  std::vector<uint8_t> bytes;
  std::vector<uint32_t> entries; // offset of each kernel, in the module's order
};

class Target {
public:
  virtual ~Target() = default;
  virtual llvm::StringRef name() const = 0;      // as in --target
  virtual llvm::StringRef arch() const = 0;      // "x86_64", "aarch64"
  virtual uint64_t requiredFeatures() const = 0; // bits of cpu_features.def
  // Among the variants that a machine can run the highest rank is chosen.
  virtual uint32_t rank() const = 0;
  virtual bool inDefaultSet() const = 0;
  virtual llvm::StringRef summary() const = 0; // one line for `izhc targets`

  // Replaces every plan.kernel of `module` by an LLVM-dialect function of the
  // same name. Emits a diagnostic and fails where it can't.
  virtual llvm::LogicalResult lowerKernels(mlir::ModuleOp module) = 0;
  // Machine code of a module that lowerKernels has treated; `order` lists the
  // kernels' names. Emits a diagnostic on failure.
  virtual llvm::FailureOr<CodeBlob> emit(mlir::ModuleOp module,
                                         llvm::ArrayRef<std::string> order) = 0;
  // The same as assembly text, for tests and for people.
  virtual llvm::FailureOr<std::string> emitAssembly(mlir::ModuleOp module) = 0;
};

using TargetList = std::vector<std::unique_ptr<Target>>;
// Every variant of every folder of targets/, in a fixed order (made in targets/Registry.cpp).
TargetList allTargets();

} // namespace izhc
