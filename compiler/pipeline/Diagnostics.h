// Turns the diagnostics of an MLIR context into one llvm::Error.

#pragma once

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/Error.h"
#include <mutex>
#include <string>

namespace izhc {

// Collects the errors of `context` while it lives; warnings go to stderr,
// remarks are dropped.
class DiagnosticCollector {
public:
  explicit DiagnosticCollector(mlir::MLIRContext *context);
  // What was collected, as one error; `otherwise` where nothing was said.
  llvm::Error take(llvm::StringRef otherwise);

private:
  std::mutex mutex;
  std::string text;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace izhc
