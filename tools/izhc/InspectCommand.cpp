// `izhc inspect`: decides by the first bytes what a file is.

#include "compiler/support/Error.h"
#include "runtime/platform/process.h"
#include "runtime/schema/header.h"
#include "tools/izhc/Inspect.h"
#include "tools/izhc/Report.h"
#include "llvm/Support/FileSystem.h"
#include <cstring>

namespace izhc::tool {

bool isArtifact(llvm::ArrayRef<uint8_t> bytes) {
  return bytes.size() >= sizeof(izh::schema::kMagic) &&
         memcmp(bytes.data(), izh::schema::kMagic, sizeof(izh::schema::kMagic)) == 0;
}

std::string clean(llvm::StringRef text) {
  return llvm::json::isUTF8(text) ? text.str() : llvm::json::fixUTF8(text);
}

int inspect(const InspectArguments &arguments) {
  izh::process_reads(arguments.file.c_str());
  if (llvm::sys::fs::is_directory(arguments.file)) {
    llvm::Error error = inspectModel(arguments.file, arguments.json);
    return error ? report(std::move(error)) : kDone;
  }
  auto file = MappedFile::open(arguments.file);
  if (!file)
    return report(file.takeError());
  llvm::Error error = isArtifact((*file)->bytes()) ? inspectArtifact(**file, arguments.json)
                                                   : inspectModel(arguments.file, arguments.json);
  return error ? report(std::move(error)) : kDone;
}

} // namespace izhc::tool
