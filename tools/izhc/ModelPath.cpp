// Only regular files are looked into: reading a pipe would take from it.

#include "tools/izhc/ModelPath.h"
#include "compiler/support/Error.h"
#include "runtime/platform/process.h"
#include "tools/izhc/Inspect.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

namespace izhc::tool {

static bool isPartOfFolder(llvm::StringRef name) {
  constexpr llvm::StringRef kParts[] = {"config.json", "generation_config.json", "tokenizer.json",
                                        "tokenizer.model", "tokenizer_config.json"};
  return name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json") ||
         llvm::is_contained(kParts, name);
}

llvm::Error checkModelPath(llvm::StringRef path, llvm::StringRef instead) {
  if (!llvm::sys::fs::is_regular_file(path))
    return llvm::Error::success();
  if (isPartOfFolder(llvm::sys::path::filename(path))) {
    llvm::StringRef folder = llvm::sys::path::parent_path(path);
    return makeError("{0} is one file of a model: give its folder, {1}", path,
                     folder.empty() ? "." : folder);
  }
  izh::process_reads(path.str().c_str());
  auto file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  if (isArtifact((*file)->bytes()))
    return makeError("{0} is compiled already: use '{1} {0}'", path, instead);
  return llvm::Error::success();
}

} // namespace izhc::tool
