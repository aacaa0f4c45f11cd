// From the tensors that safetensors files hold to those that a model has: a
// matrix that is stored as values and scales becomes one tensor.

#pragma once

#include "compiler/import/ModelSource.h"
#include "compiler/import/Safetensors.h"

namespace izhc {

// Rows and columns that share one scale.
struct ScaleBlock {
  int64_t rows = 128;
  int64_t cols = 128;
};

struct CombinedTensor {
  std::string name;
  // As in TensorInfo: columns first, 1 to 4 sizes; sizes of 1 inside are left out.
  llvm::SmallVector<int64_t, 4> shape;
  // nullptr if izh can't read the type, which `type` names.
  std::string type;
  const FormatSpec *format = nullptr;
  const uint8_t *data = nullptr;
  std::shared_ptr<const RowReader> reader;
};

// `name` is for messages. What is not part of a pair comes out as it is.
// `release` hands pages back and must outlive the result.
llvm::Expected<std::vector<CombinedTensor>>
combineStored(llvm::StringRef name, llvm::ArrayRef<StoredTensor> stored, ScaleBlock block,
              std::function<void(const uint8_t *, uint64_t)> release);

} // namespace izhc
