// Collecting of diagnostics, with their locations where these say anything.

#include "compiler/pipeline/Diagnostics.h"
#include "compiler/support/Error.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"

namespace izhc {

static std::string describe(mlir::Diagnostic &diagnostic) {
  std::string text;
  llvm::raw_string_ostream out(text);
  mlir::Location location = diagnostic.getLocation();
  if (!llvm::isa<mlir::UnknownLoc>(location)) {
    if (auto name = llvm::dyn_cast<mlir::NameLoc>(location))
      out << name.getName().getValue();
    else
      location.print(out);
    out << ": ";
  }
  out << diagnostic.str();
  return text;
}

DiagnosticCollector::DiagnosticCollector(mlir::MLIRContext *context)
    : handler(context, [this](mlir::Diagnostic &diagnostic) {
        std::lock_guard<std::mutex> lock(mutex);
        if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error)
          text += (text.empty() ? "" : "; ") + describe(diagnostic);
        else if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Warning)
          llvm::errs() << "warning: " << describe(diagnostic) << '\n';
        return mlir::success();
      }) {}

llvm::Error DiagnosticCollector::take(llvm::StringRef otherwise) {
  std::lock_guard<std::mutex> lock(mutex);
  return makeError("{0}", text.empty() ? otherwise : llvm::StringRef(text));
}

} // namespace izhc
