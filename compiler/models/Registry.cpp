// The table of architectures and the function that picks one.

#include "compiler/models/Model.h"
#include "compiler/models/blocks/ModelBuilder.h"
#include "compiler/support/Error.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/STLExtras.h"

namespace izhc {

namespace models {
#define IZH_ENTRY(name) extern const ModelSpec k##name;
#include "compiler/models/Registry.inc"
#undef IZH_ENTRY
} // namespace models

llvm::ArrayRef<const ModelSpec *> allModels() {
  static const ModelSpec *const table[] = {
#define IZH_ENTRY(name) &models::k##name,
#include "compiler/models/Registry.inc"
#undef IZH_ENTRY
  };
  return table;
}

static const ModelSpec *findModel(llvm::StringRef architecture) {
  for (const ModelSpec *spec : allModels())
    if (llvm::is_contained(spec->names, architecture))
      return spec;
  return nullptr;
}

static llvm::Error unknownArchitecture(const ModelSource &source, llvm::StringRef architecture) {
  std::string known;
  for (const ModelSpec *spec : allModels())
    for (llvm::StringRef name : spec->names)
      known += (known.empty() ? "" : ", ") + name.str();
  return makeError("{0}: the architecture {1} can't be compiled; known are {2}", source.fileName(),
                   quote(architecture), known);
}

llvm::Expected<Model> buildModel(const ModelSource &source, mlir::MLIRContext &context) {
  llvm::Expected<llvm::StringRef> architecture = source.requireString("general.architecture");
  if (!architecture)
    return architecture.takeError();
  const ModelSpec *spec = findModel(*architecture);
  if (!spec)
    return unknownArchitecture(source, *architecture);
  llvm::Expected<std::optional<llvm::StringRef>> name = source.getString("general.name");
  if (!name)
    return name.takeError();

  Model model;
  model.facts.architecture = architecture->str();
  model.facts.name = name->value_or("").str();
  for (const TensorInfo &tensor : source.tensors())
    model.facts.parameters += tensor.elements();
  ModelBuilder builder(source, context);
  mlir::Value logits = spec->build(builder, *architecture, model.facts);
  llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> module = builder.finish(logits);
  if (!module)
    return module.takeError();
  model.module = std::move(*module);
  return model;
}

} // namespace izhc
