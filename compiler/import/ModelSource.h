// A model as the rest of the compiler sees it, whatever file it came from:
// metadata by key and tensors by name. All bytes stay in the mapped file;
// StringRefs and pointers live as long as the ModelSource.

#pragma once

#include "compiler/formats/Format.h"
#include "compiler/import/RowReader.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace izhc {

struct TensorInfo {
  llvm::StringRef name;
  // 1 to 4 sizes, each at least 1, fastest first: shape[0] is the number of
  // columns. Their product fits in int64_t.
  llvm::SmallVector<int64_t, 4> shape;
  // The type's number in the file, and its format, or nullptr if there is no
  // such format; then `data` is nullptr and `bytes` 0.
  uint32_t ggufType = 0;
  // The type as other files than GGUF spell it.
  llvm::StringRef storedType;
  const FormatSpec *format = nullptr;
  // Inside of the file; `bytes` = rows() * rowBytes().
  const uint8_t *data = nullptr;
  uint64_t bytes = 0;
  // Instead of `data`, for tensors that the file holds in another form.
  std::shared_ptr<const RowReader> reader;

  int64_t cols() const { return shape[0]; }
  // All sizes but the first, multiplied.
  int64_t rows() const;
  int64_t elements() const { return rows() * cols(); }
  // cols() is a multiple of the format's blockWeights.
  uint64_t rowBytes() const;
  // Rows first .. first + count, wherever they come from; there is a format.
  void readRows(int64_t first, int64_t count, uint8_t *out) const;
};

// A key and its value as text for people (long values are cut).
struct MetaInfo {
  llvm::StringRef key;
  std::string type;
  std::string value;
};

// A key as GGUF files hold it: `value` is the number of its type, then what the
// type asks for.
struct ExportKey {
  llvm::StringRef name;
  std::vector<uint8_t> value;
};

class FolderSource;

class ModelSource {
public:
  virtual ~ModelSource() = default;

  // This source as a folder whose keys and names are those of its publisher;
  // nullptr if it is none.
  virtual const FolderSource *asFolder() const { return nullptr; }
  // A file that belongs to the model and lies beside it ("tokenizer.json").
  virtual std::optional<llvm::ArrayRef<uint8_t>> companion(llvm::StringRef name) const {
    return std::nullopt;
  }

  // The path that was opened, for messages.
  virtual llvm::StringRef fileName() const = 0;
  // What kind of file it is, for example "GGUF v3".
  virtual std::string kindName() const = 0;
  // What messages call a key: "FILE: the key 'KEY'", or the place in the file
  // that tells what the key says.
  virtual std::string keyPlace(llvm::StringRef key) const;
  // What the file calls a tensor that it has, or should have, as `name`.
  virtual std::string tensorName(llvm::StringRef name) const { return name.str(); }
  // Bytes of all files together.
  virtual uint64_t fileBytes() const = 0;

  // All keys in the file's order.
  virtual std::vector<MetaInfo> metadata() const = 0;
  // The same as GGUF files hold them; empty where the source has no such form.
  virtual std::vector<ExportKey> exportKeys() const { return {}; }
  virtual bool hasKey(llvm::StringRef key) const = 0;

  // The value of `key`; std::nullopt if there is none; an error naming file
  // and key if it is of another type or doesn't fit.
  // getUInt, getInt: all integer types. getFloat: float and integer types.
  virtual llvm::Expected<std::optional<uint64_t>> getUInt(llvm::StringRef key) const = 0;
  virtual llvm::Expected<std::optional<int64_t>> getInt(llvm::StringRef key) const = 0;
  virtual llvm::Expected<std::optional<double>> getFloat(llvm::StringRef key) const = 0;
  virtual llvm::Expected<std::optional<bool>> getBool(llvm::StringRef key) const = 0;
  // Any bytes: nothing checks that they are UTF-8.
  virtual llvm::Expected<std::optional<llvm::StringRef>> getString(llvm::StringRef key) const = 0;
  virtual llvm::Expected<std::optional<std::vector<llvm::StringRef>>>
  getStringArray(llvm::StringRef key) const = 0;
  virtual llvm::Expected<std::optional<std::vector<float>>>
  getFloatArray(llvm::StringRef key) const = 0;
  // Arrays of any integer type and of bool.
  virtual llvm::Expected<std::optional<std::vector<int64_t>>>
  getIntArray(llvm::StringRef key) const = 0;
  // True if the value is an array (some keys may be a number or one per layer).
  virtual bool isArray(llvm::StringRef key) const = 0;

  // The same for keys that must be there: absence is an error too, and so is
  // a value outside of [low, high].
  llvm::Expected<uint64_t> requireUInt(llvm::StringRef key, uint64_t low = 0,
                                       uint64_t high = UINT64_MAX) const;
  llvm::Expected<double> requireFloat(llvm::StringRef key) const;
  llvm::Expected<llvm::StringRef> requireString(llvm::StringRef key) const;
  llvm::Expected<std::vector<llvm::StringRef>> requireStringArray(llvm::StringRef key) const;
  // And for keys with a default.
  llvm::Expected<uint64_t> getUIntOr(llvm::StringRef key, uint64_t otherwise, uint64_t low = 0,
                                     uint64_t high = UINT64_MAX) const;
  llvm::Expected<double> getFloatOr(llvm::StringRef key, double otherwise) const;
  llvm::Expected<bool> getBoolOr(llvm::StringRef key, bool otherwise) const;

  // All tensors in the file's order; no two share a name or bytes.
  virtual llvm::ArrayRef<TensorInfo> tensors() const = 0;
  // nullptr if there is none.
  virtual const TensorInfo *findTensor(llvm::StringRef name) const = 0;
  // Never nullptr: an error if it is absent, or if its type is unknown.
  llvm::Expected<const TensorInfo *> requireTensor(llvm::StringRef name) const;
  // The same, and its shape must be `shape` (ones at the end may be left out).
  llvm::Expected<const TensorInfo *> requireTensor(llvm::StringRef name,
                                                   llvm::ArrayRef<int64_t> shape) const;

  // Hands pages back that lie wholly inside of a tensor's bytes, once they
  // are packed; they may still be read afterwards. Safe from several threads.
  virtual void release(const uint8_t *data, uint64_t bytes) const = 0;

  // XXH3 (128 bits, 32 hex digits as `xxh128sum` prints) of the file's bytes;
  // of several files: of their bytes in order. Reads everything once, keeps
  // nothing resident.
  virtual std::string hash() const = 0;
};

// Opens a model. Fails with a sentence if it is no supported file, or if
// anything in it contradicts itself or the file's length. Tensors of unknown
// type are no error here.
llvm::Expected<std::unique_ptr<ModelSource>> openModel(llvm::StringRef path);

} // namespace izhc
