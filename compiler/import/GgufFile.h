// One GGUF file (versions 2 and 3, little-endian) as the lists that it holds.
// Everything is checked against the file's length before it is used; nothing
// is copied but the lists themselves. Split models are Gguf.h's matter.

#pragma once

#include "compiler/import/ModelSource.h"
#include "llvm/ADT/DenseMap.h"

namespace izhc {

// The numbers that the file format gives to types of metadata.
enum class GgufType : uint32_t {
  U8,
  I8,
  U16,
  I16,
  U32,
  I32,
  F32,
  Bool,
  String,
  Array,
  U64,
  I64,
  F64
};

// Bytes of a value; 0 for strings and arrays, whose length varies.
uint64_t fixedSize(GgufType type);

struct GgufValue {
  llvm::StringRef key;
  GgufType type = GgufType::U8;
  // Of arrays: the elements' type and number. The elements' bytes (strings
  // each with their length) were walked once and lie inside of the file.
  GgufType elementType = GgufType::U8;
  uint64_t count = 1;
  llvm::ArrayRef<uint8_t> payload;
};

// Limits that no sensible file reaches and that keep hostile ones cheap.
struct GgufLimits {
  static constexpr uint64_t kKeys = 100000;
  static constexpr uint64_t kTensors = 100000;
  static constexpr uint64_t kKeyLength = 65535;
  static constexpr uint64_t kNameLength = 256;
  static constexpr unsigned kArrayDepth = 4;
};

struct GgufFile {
  uint32_t version = 0;
  std::vector<GgufValue> values;
  llvm::DenseMap<llvm::StringRef, size_t> keys;
  std::vector<TensorInfo> tensors;

  const GgufValue *find(llvm::StringRef key) const {
    auto found = keys.find(key);
    return found == keys.end() ? nullptr : &values[found->second];
  }
};

// What comes before the tensors' bytes.
struct GgufHeader {
  struct Tensor {
    // In the file, and where they begin behind the header; without a format 0.
    uint64_t bytes, offset;
  };
  uint64_t bytes = 0; // up to where the tensors' bytes begin
  uint64_t alignment = 0;
  std::vector<Tensor> tensors;
};

// Reads no more than that of the file `name`.
llvm::Expected<GgufHeader> readGgufHeader(llvm::StringRef name, llvm::ArrayRef<uint8_t> bytes);

// Reads the file `name` (for messages) whose content is `bytes`. The result
// points into `bytes`.
llvm::Expected<GgufFile> readGguf(llvm::StringRef name, llvm::ArrayRef<uint8_t> bytes);

} // namespace izhc
