// How much each column of a matrix matters, as measured on calibration texts:
// files in llama.cpp's two forms (GGUF, and the older list of entries).

#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace izhc {

class Importance {
public:
  // The mean square of each input of the matrix `name`, expert after expert;
  // empty if the file has none.
  llvm::ArrayRef<float> find(llvm::StringRef name) const {
    auto found = entries.find(name);
    return found == entries.end() ? llvm::ArrayRef<float>() : llvm::ArrayRef(found->second);
  }
  size_t size() const { return entries.size(); }
  llvm::StringRef fileName() const { return path; }

private:
  friend llvm::Expected<Importance> readImportance(llvm::StringRef path);
  friend llvm::Expected<Importance> readImportanceBytes(llvm::StringRef name,
                                                        llvm::ArrayRef<uint8_t> bytes);
  std::string path;
  llvm::StringMap<std::vector<float>> entries;
};

// Fails with a sentence if the file is neither form, or contradicts itself.
llvm::Expected<Importance> readImportance(llvm::StringRef path);
// The same for bytes in memory.
llvm::Expected<Importance> readImportanceBytes(llvm::StringRef name, llvm::ArrayRef<uint8_t> bytes);

} // namespace izhc
