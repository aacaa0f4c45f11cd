// GGUF form: for each matrix NAME the tensors NAME.in_sum2 (sums of squares,
// columns x experts) and NAME.counts (1 x experts). List form, little-endian:
// int32 number of entries; of each int32 length, name, int32 calls, int32
// number of values, values (sums over the calls); whatever follows is notes.

#include "compiler/import/Importance.h"
#include "compiler/import/ByteReader.h"
#include "compiler/import/GgufFile.h"
#include "compiler/support/Error.h"
#include "compiler/support/MappedFile.h"

#include <cmath>
#include <cstring>

using namespace izhc;

using Entries = llvm::StringMap<std::vector<float>>;

static llvm::Error checkValues(llvm::StringRef file, llvm::StringRef name,
                               llvm::ArrayRef<float> values) {
  for (float value : values)
    if (!std::isfinite(value) || value < 0)
      return makeError("{0}: the importance of {1} holds {2}, but numbers of at least 0 are "
                       "expected; make the file again",
                       file, quote(name), value);
  return llvm::Error::success();
}

static std::vector<float> floatsOf(const TensorInfo &tensor) {
  std::vector<float> values(tensor.elements());
  std::memcpy(values.data(), tensor.data, values.size() * sizeof(float));
  return values;
}

static llvm::Error readGgufForm(llvm::StringRef file, llvm::ArrayRef<uint8_t> bytes,
                                Entries &entries) {
  llvm::Expected<GgufFile> gguf = readGguf(file, bytes);
  if (!gguf)
    return gguf.takeError();
  llvm::StringMap<const TensorInfo *> tensors;
  for (const TensorInfo &tensor : gguf->tensors)
    tensors[tensor.name] = &tensor;
  for (const TensorInfo &sums : gguf->tensors) {
    llvm::StringRef name = sums.name;
    if (!name.consume_back(".in_sum2"))
      continue;
    const TensorInfo *counts = tensors.lookup((name + ".counts").str());
    for (const TensorInfo *tensor : {&sums, counts})
      if (!tensor || !tensor->format || tensor->format->kind != ElementKind::F32)
        return makeError("{0}: {1} must have .in_sum2 and .counts in f32", file, quote(name));
    if (counts->elements() != sums.rows())
      return makeError("{0}: {1} has {2} counts for {3} rows of sums", file, quote(name),
                       counts->elements(), sums.rows());
    std::vector<float> values = floatsOf(sums), calls = floatsOf(*counts);
    for (size_t i = 0; i < values.size(); ++i) {
      float count = calls[i / sums.cols()];
      values[i] = count > 0 ? values[i] / count : 0;
    }
    if (llvm::Error error = checkValues(file, name, values))
      return error;
    entries[name] = std::move(values);
  }
  return llvm::Error::success();
}

static llvm::Error readListForm(llvm::StringRef file, llvm::ArrayRef<uint8_t> bytes,
                                Entries &entries) {
  auto damaged = [&] {
    return makeError("{0}: this is no importance matrix: neither GGUF nor a list of entries", file);
  };
  size_t at = 0;
  auto number = [&](uint32_t &value) {
    if (bytes.size() - at < 4)
      return false;
    value = ByteReader::decode<uint32_t>(bytes.data() + at);
    at += 4;
    return true;
  };
  uint32_t count, length, calls, size;
  if (!number(count) || count == 0 || count > GgufLimits::kTensors)
    return damaged();
  for (uint32_t i = 0; i < count; ++i) {
    if (!number(length) || length > GgufLimits::kNameLength || length > bytes.size() - at)
      return damaged();
    llvm::StringRef name(reinterpret_cast<const char *>(bytes.data() + at), length);
    at += length;
    if (!number(calls) || !number(size) || size == 0 || size > (bytes.size() - at) / 4)
      return damaged();
    std::vector<float> values(size);
    std::memcpy(values.data(), bytes.data() + at, size * size_t(4));
    at += size * size_t(4);
    for (float &value : values)
      value /= std::max<uint32_t>(calls, 1);
    if (llvm::Error error = checkValues(file, name, values))
      return error;
    entries[name] = std::move(values);
  }
  return llvm::Error::success();
}

llvm::Expected<Importance> izhc::readImportanceBytes(llvm::StringRef name,
                                                     llvm::ArrayRef<uint8_t> bytes) {
  Importance result;
  result.path = name.str();
  bool isGguf = bytes.size() >= 4 && std::memcmp(bytes.data(), "GGUF", 4) == 0;
  llvm::Error error = isGguf ? readGgufForm(name, bytes, result.entries)
                             : readListForm(name, bytes, result.entries);
  if (error)
    return std::move(error);
  if (result.entries.empty())
    return makeError("{0}: the file holds no importance of any matrix", name);
  return std::move(result);
}

llvm::Expected<Importance> izhc::readImportance(llvm::StringRef path) {
  llvm::Expected<std::unique_ptr<MappedFile>> map = MappedFile::open(path);
  if (!map)
    return map.takeError();
  return readImportanceBytes(path, (*map)->bytes());
}
