// The table of architectures and the function that picks one.

#include "compiler/models/Model.h"

#include "compiler/import/FolderModel.h"
#include "compiler/models/blocks/ModelBuilder.h"
#include "compiler/support/Error.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"

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

static const FolderMap *findFolderMap(llvm::StringRef type) {
  for (const ModelSpec *spec : allModels())
    if (spec->folder && llvm::is_contained(spec->folder->types, type))
      return spec->folder;
  return nullptr;
}

// The model's own type, or that of the language model inside of a larger one.
llvm::Expected<std::unique_ptr<ModelSource>> presentFolder(std::unique_ptr<FolderSource> folder) {
  if (folder->tensors().empty())
    return makeError("{0}: the folder holds no weights (model*.safetensors); fetch them too",
                     folder->fileName());
  auto type = folder->getString("model_type");
  if (!type)
    return type.takeError();
  auto inner = folder->getString("text_config.model_type");
  if (!inner)
    return inner.takeError();
  for (auto &one : {*type, *inner})
    if (one)
      if (const FolderMap *map = findFolderMap(*one))
        return FolderModel::create(std::move(folder), *map);
  if (!*type)
    return makeError("{0}/config.json: there is no 'model_type'", folder->fileName());
  std::string known;
  for (const ModelSpec *spec : allModels())
    if (spec->folder)
      for (llvm::StringRef name : spec->folder->types)
        known += (known.empty() ? "" : ", ") + name.str();
  return makeError("{0}/config.json: a model_type of {1} can't be compiled from a folder; known "
                   "are {2}; perhaps there is a GGUF file of the model",
                   folder->fileName(), quote(**type), known);
}

llvm::Expected<std::unique_ptr<ModelSource>> openForBuilding(llvm::StringRef path) {
  if (!llvm::sys::fs::is_directory(path))
    return openModel(path);
  auto folder = FolderSource::open(path);
  if (!folder)
    return folder.takeError();
  return presentFolder(std::move(*folder));
}

llvm::Expected<Model> buildModel(const ModelSource &source, mlir::MLIRContext &context,
                                 uint32_t tokens) {
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
  ModelBuilder builder(source, context, tokens);
  mlir::Value logits = spec->build(builder, *architecture, model.facts);
  llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> module = builder.finish(logits);
  if (!module)
    return module.takeError();
  model.module = std::move(*module);
  if (tokens > model.facts.longest)
    return makeError("{0}: --context={1} is more than the {2} tokens that the model was trained "
                     "for ({3}); give at most that",
                     source.fileName(), tokens, model.facts.longest,
                     source.keyPlace(architecture->str() + ".context_length"));
  if (tokens != 0)
    model.facts.context = tokens;
  return model;
}

} // namespace izhc
