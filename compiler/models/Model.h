// Architectures: from a model's metadata and tensors to the `lm` dialect.
// Registry.cpp has the functions; one file of this folder is one architecture.

#pragma once

#include "compiler/import/FolderMap.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace izhc {

class ModelBuilder;

// What the artifact tells about the model.
struct ModelFacts {
  std::string architecture; // as the file spells it
  std::string name;         // may be empty
  uint32_t vocabulary = 0;  // columns of the logits
  uint32_t context = 0;     // tokens that this build of the model is for
  uint32_t longest = 0;     // tokens that the model was trained for
  uint32_t embedding = 0;
  uint32_t layers = 0;
  uint64_t parameters = 0;
};

struct Model {
  // Holds func.func @step, see LmOps.td.
  mlir::OwningOpRef<mlir::ModuleOp> module;
  ModelFacts facts;
};

// One architecture.
struct ModelSpec {
  // The values of general.architecture that mean it.
  llvm::ArrayRef<llvm::StringRef> names;
  // Appends the ops of one step to `builder` and returns the logits; fills
  // what it knows of `facts`. Errors go to the builder (see ModelBuilder.h),
  // and then the value returned may be null.
  mlir::Value (*build)(ModelBuilder &builder, llvm::StringRef architecture, ModelFacts &facts);
  // How folders of it look; nullptr: only GGUF files are known.
  const FolderMap *folder = nullptr;
};

// All architectures in a fixed order.
llvm::ArrayRef<const ModelSpec *> allModels();

// Opens a model so that buildModel can build it: a folder is presented with the
// keys and tensors of its architecture.
llvm::Expected<std::unique_ptr<ModelSource>> openForBuilding(llvm::StringRef path);
// The same for a folder that is open.
llvm::Expected<std::unique_ptr<ModelSource>> presentFolder(std::unique_ptr<FolderSource> folder);

// Builds the module of `source`. Fails with a sentence that names the file and
// the key or tensor if the architecture is unknown, a parameter is missing or
// absurd, a tensor is missing or misshapen, or a tensor would go unused.
// Loads the dialects that it needs into `context`. The module refers to
// tensors by name only and may outlive `source`. `tokens` is how long texts may
// become, at most what the model was trained for; 0: what it does best at. Rotary
// positions with factors for short and for long texts take the long ones where it is
// more than the length that the model was first trained for.
llvm::Expected<Model> buildModel(const ModelSource &source, mlir::MLIRContext &context,
                                 uint32_t tokens = 0);

} // namespace izhc
