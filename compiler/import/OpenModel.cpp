// Chooses the reader for what the user named.

#include "compiler/import/Gguf.h"
#include "compiler/support/Error.h"

#include "llvm/Support/FileSystem.h"

using namespace izhc;

llvm::Expected<std::unique_ptr<ModelSource>> izhc::openModel(llvm::StringRef path) {
  if (llvm::sys::fs::is_directory(path))
    return makeError("{0}: this is a folder, but izhc reads only GGUF files so far; give "
                     "a .gguf file",
                     path);
  return openGguf(path);
}
