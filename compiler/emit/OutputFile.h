// A file that appears under its name only when it is complete. Internal to
// compiler/emit.

#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include <cstdint>
#include <optional>
#include <string>

namespace izhc::emit {

class OutputFile {
public:
  // Creates a temporary file beside `path`, or beside the file that it links
  // to; a signal removes it.
  static llvm::Expected<OutputFile> create(llvm::StringRef path);
  OutputFile(OutputFile &&other) = default;
  // Removes the temporary file unless `keep` has succeeded.
  ~OutputFile();

  // Makes room for `bytes`, so that a full disk shows before the work is done.
  llvm::Error reserve(uint64_t bytes);
  llvm::Error write(uint64_t offset, llvm::ArrayRef<uint8_t> bytes);
  // Gives the file its name.
  llvm::Error keep();

private:
  OutputFile(std::string path, llvm::sys::fs::TempFile file)
      : path(std::move(path)), file(std::move(file)) {}
  llvm::Error failure(const char *what, int code) const;

  std::string path;
  std::optional<llvm::sys::fs::TempFile> file;
};

} // namespace izhc::emit
