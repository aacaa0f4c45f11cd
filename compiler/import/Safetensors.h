// One safetensors file as the list that it holds: a length of 8 bytes, a JSON
// header of names, types, shapes and places, then the tensors' bytes. All is
// checked against the file's length; nothing is copied but the list.

#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <string>
#include <vector>

namespace izhc {

struct StoredTensor {
  std::string name;
  // As the file spells it: "BF16", "F8_E4M3" ...
  std::string type;
  // Slowest size first, as in the file; empty for a single number. All at
  // least 1, and their product fits in int64_t.
  llvm::SmallVector<int64_t, 4> shape;
  llvm::ArrayRef<uint8_t> bytes;
};

struct SafetensorsLimits {
  // The format's own limit.
  static constexpr uint64_t kHeaderBytes = 100'000'000;
  static constexpr uint64_t kTensors = 200'000;
  static constexpr uint64_t kNameLength = 256;
  static constexpr size_t kRank = 8;
};

// Reads the file `name` (for messages) whose content is `bytes`, to which the
// result points. Types that izh doesn't know are no error here.
llvm::Expected<std::vector<StoredTensor>> readSafetensors(llvm::StringRef name,
                                                          llvm::ArrayRef<uint8_t> bytes);

} // namespace izhc
