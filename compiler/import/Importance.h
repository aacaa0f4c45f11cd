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

// What was measured of one matrix: sums of squares of its inputs, over `count`
// rows of activations.
struct ImportanceSums {
  std::string name;
  std::vector<float> sums;
  uint64_t count;
};

// Writes the GGUF form. `source` and the two sizes tell people what it is of.
llvm::Error writeImportance(llvm::StringRef path, llvm::ArrayRef<ImportanceSums> matrices,
                            llvm::StringRef source, uint32_t chunks, uint32_t chunkTokens);

} // namespace izhc
