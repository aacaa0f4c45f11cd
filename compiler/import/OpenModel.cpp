// Chooses the reader for what the user named.

#include "compiler/import/FolderSource.h"
#include "compiler/import/Gguf.h"

#include "llvm/Support/FileSystem.h"

using namespace izhc;

llvm::Expected<std::unique_ptr<ModelSource>> izhc::openModel(llvm::StringRef path) {
  if (llvm::sys::fs::is_directory(path))
    return FolderSource::open(path);
  return openGguf(path);
}
