// GGUF metadata behind the getters of ModelSource, and split models.

#include "compiler/import/Gguf.h"

#include "compiler/import/ByteReader.h"
#include "compiler/import/GgufFile.h"
#include "compiler/import/GgufText.h"
#include "compiler/import/Hash.h"
#include "compiler/support/Error.h"
#include "compiler/support/MappedFile.h"

#include <bit>
#include <cmath>

using namespace izhc;

//===----------------------------------------------------------------------===//
// Single values
//===----------------------------------------------------------------------===//

// An integer of any type as sign and size, so that both 64-bit ranges fit.
namespace {
struct Integer {
  bool negative;
  uint64_t bits;
};
} // namespace

static std::optional<Integer> readInteger(GgufType type, const uint8_t *data) {
  auto isSigned = [](int64_t value) { return Integer{value < 0, static_cast<uint64_t>(value)}; };
  switch (type) {
  case GgufType::U8:
    return Integer{false, ByteReader::decode<uint8_t>(data)};
  case GgufType::U16:
    return Integer{false, ByteReader::decode<uint16_t>(data)};
  case GgufType::U32:
    return Integer{false, ByteReader::decode<uint32_t>(data)};
  case GgufType::U64:
    return Integer{false, ByteReader::decode<uint64_t>(data)};
  case GgufType::I8:
    return isSigned(ByteReader::decode<int8_t>(data));
  case GgufType::I16:
    return isSigned(ByteReader::decode<int16_t>(data));
  case GgufType::I32:
    return isSigned(ByteReader::decode<int32_t>(data));
  case GgufType::I64:
    return isSigned(ByteReader::decode<int64_t>(data));
  default:
    return std::nullopt;
  }
}

static std::optional<double> readNumber(GgufType type, const uint8_t *data) {
  if (type == GgufType::F32)
    return std::bit_cast<float>(ByteReader::decode<uint32_t>(data));
  if (type == GgufType::F64)
    return std::bit_cast<double>(ByteReader::decode<uint64_t>(data));
  if (std::optional<Integer> integer = readInteger(type, data))
    return integer->negative ? static_cast<double>(static_cast<int64_t>(integer->bits))
                             : static_cast<double>(integer->bits);
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// The model
//===----------------------------------------------------------------------===//

namespace {
// One file of the model; `map` is null for bytes that someone else keeps.
struct Part {
  std::unique_ptr<MappedFile> map;
  llvm::ArrayRef<uint8_t> bytes;
  GgufFile file;
};

class GgufModel final : public ModelSource {
public:
  GgufModel(llvm::StringRef name) : name(name.str()) {}

  // Takes over a part and its tensors; metadata is that of the first part.
  llvm::Error add(Part part);
  const GgufFile &first() const { return parts.front().file; }

  llvm::StringRef fileName() const override { return name; }
  std::string kindName() const override;
  uint64_t fileBytes() const override;
  std::vector<MetaInfo> metadata() const override;
  std::vector<ExportKey> exportKeys() const override;
  bool hasKey(llvm::StringRef key) const override { return first().find(key); }
  bool isArray(llvm::StringRef key) const override {
    const GgufValue *value = first().find(key);
    return value && value->type == GgufType::Array;
  }

  llvm::Expected<std::optional<uint64_t>> getUInt(llvm::StringRef key) const override;
  llvm::Expected<std::optional<int64_t>> getInt(llvm::StringRef key) const override;
  llvm::Expected<std::optional<double>> getFloat(llvm::StringRef key) const override;
  llvm::Expected<std::optional<bool>> getBool(llvm::StringRef key) const override;
  llvm::Expected<std::optional<llvm::StringRef>> getString(llvm::StringRef key) const override;
  llvm::Expected<std::optional<std::vector<llvm::StringRef>>>
  getStringArray(llvm::StringRef key) const override;
  llvm::Expected<std::optional<std::vector<float>>>
  getFloatArray(llvm::StringRef key) const override;
  llvm::Expected<std::optional<std::vector<int64_t>>>
  getIntArray(llvm::StringRef key) const override;

  llvm::ArrayRef<TensorInfo> tensors() const override { return allTensors; }
  const TensorInfo *findTensor(llvm::StringRef name) const override {
    auto found = tensorNames.find(name);
    return found == tensorNames.end() ? nullptr : &allTensors[found->second];
  }
  void release(const uint8_t *data, uint64_t bytes) const override;
  std::string hash() const override;

private:
  llvm::Error mismatch(const GgufValue &value, const char *expected) const {
    return makeError("{0}: the key {1} is of type {2}, but {3} is expected", name, quote(value.key),
                     typeText(value), expected);
  }

  std::string name;
  std::vector<Part> parts;
  std::vector<TensorInfo> allTensors;
  llvm::DenseMap<llvm::StringRef, size_t> tensorNames;
};
} // namespace

llvm::Error GgufModel::add(Part part) {
  for (TensorInfo &tensor : part.file.tensors) {
    if (!tensorNames.try_emplace(tensor.name, allTensors.size()).second)
      return makeError("{0}: the tensor {1} is in two files of the split model", name,
                       quote(tensor.name));
    allTensors.push_back(std::move(tensor));
  }
  part.file.tensors.clear();
  parts.push_back(std::move(part));
  return llvm::Error::success();
}

std::string GgufModel::kindName() const {
  std::string kind = "GGUF v" + std::to_string(first().version);
  if (parts.size() > 1)
    kind += ", " + std::to_string(parts.size()) + " files";
  return kind;
}

uint64_t GgufModel::fileBytes() const {
  uint64_t sum = 0;
  for (const Part &part : parts)
    sum += part.bytes.size();
  return sum;
}

std::vector<MetaInfo> GgufModel::metadata() const {
  std::vector<MetaInfo> list;
  for (const GgufValue &value : first().values)
    list.push_back({value.key, typeText(value), valueText(value)});
  return list;
}

std::vector<ExportKey> GgufModel::exportKeys() const {
  std::vector<ExportKey> keys;
  for (const GgufValue &value : first().values) {
    ExportKey key{value.key, {}};
    auto put = [&](uint64_t number, int bytes) {
      for (int i = 0; i < bytes; ++i)
        key.value.push_back(static_cast<uint8_t>(number >> 8 * i));
    };
    put(static_cast<uint32_t>(value.type), 4);
    if (value.type == GgufType::Array) {
      put(static_cast<uint32_t>(value.elementType), 4);
      put(value.count, 8);
    }
    key.value.insert(key.value.end(), value.payload.begin(), value.payload.end());
    keys.push_back(std::move(key));
  }
  return keys;
}

void GgufModel::release(const uint8_t *data, uint64_t bytes) const {
  for (const Part &part : parts)
    if (part.map && part.map->contains(data))
      part.map->release(static_cast<uint64_t>(data - part.bytes.data()), bytes);
}

std::string GgufModel::hash() const {
  std::vector<llvm::ArrayRef<uint8_t>> pieces;
  for (const Part &part : parts)
    pieces.push_back(part.bytes);
  return hashPieces(pieces,
                    [&](llvm::ArrayRef<uint8_t> read) { release(read.data(), read.size()); });
}

//===----------------------------------------------------------------------===//
// Getters
//===----------------------------------------------------------------------===//

llvm::Expected<std::optional<uint64_t>> GgufModel::getUInt(llvm::StringRef key) const {
  const GgufValue *value = first().find(key);
  if (!value)
    return std::nullopt;
  std::optional<Integer> integer = readInteger(value->type, value->payload.data());
  if (!integer)
    return mismatch(*value, "an integer");
  if (integer->negative)
    return makeError("{0}: the key {1} is {2}, but must not be negative", name, quote(key),
                     static_cast<int64_t>(integer->bits));
  return integer->bits;
}

llvm::Expected<std::optional<int64_t>> GgufModel::getInt(llvm::StringRef key) const {
  const GgufValue *value = first().find(key);
  if (!value)
    return std::nullopt;
  std::optional<Integer> integer = readInteger(value->type, value->payload.data());
  if (!integer)
    return mismatch(*value, "an integer");
  if (!integer->negative && integer->bits > INT64_MAX)
    return makeError("{0}: the key {1} is {2}, which is too large", name, quote(key),
                     integer->bits);
  return static_cast<int64_t>(integer->bits);
}

llvm::Expected<std::optional<double>> GgufModel::getFloat(llvm::StringRef key) const {
  const GgufValue *value = first().find(key);
  if (!value)
    return std::nullopt;
  std::optional<double> number = readNumber(value->type, value->payload.data());
  if (!number)
    return mismatch(*value, "a number");
  if (!std::isfinite(*number))
    return makeError("{0}: the key {1} is {2}, but must be finite", name, quote(key), *number);
  return *number;
}

llvm::Expected<std::optional<bool>> GgufModel::getBool(llvm::StringRef key) const {
  const GgufValue *value = first().find(key);
  if (!value)
    return std::nullopt;
  if (value->type != GgufType::Bool)
    return mismatch(*value, "a bool");
  return value->payload[0] != 0;
}

llvm::Expected<std::optional<llvm::StringRef>> GgufModel::getString(llvm::StringRef key) const {
  const GgufValue *value = first().find(key);
  if (!value)
    return std::nullopt;
  llvm::StringRef text;
  ByteReader in(value->payload);
  if (value->type != GgufType::String || !in.readString(text))
    return mismatch(*value, "a string");
  return text;
}

llvm::Expected<std::optional<std::vector<llvm::StringRef>>>
GgufModel::getStringArray(llvm::StringRef key) const {
  const GgufValue *value = first().find(key);
  if (!value)
    return std::nullopt;
  if (value->type != GgufType::Array || value->elementType != GgufType::String)
    return mismatch(*value, "an array of strings");
  // count was found true when the file was read.
  std::vector<llvm::StringRef> strings(value->count);
  ByteReader in(value->payload);
  for (llvm::StringRef &text : strings)
    if (!in.readString(text))
      return mismatch(*value, "an array of strings");
  return strings;
}

llvm::Expected<std::optional<std::vector<float>>>
GgufModel::getFloatArray(llvm::StringRef key) const {
  const GgufValue *value = first().find(key);
  if (!value)
    return std::nullopt;
  uint64_t size = fixedSize(value->elementType);
  if (value->type != GgufType::Array || size == 0 || value->elementType == GgufType::Bool)
    return mismatch(*value, "an array of numbers");
  std::vector<float> numbers(value->count);
  for (uint64_t i = 0; i < value->count; ++i)
    numbers[i] = static_cast<float>(
        readNumber(value->elementType, value->payload.data() + i * size).value_or(0));
  return numbers;
}

llvm::Expected<std::optional<std::vector<int64_t>>>
GgufModel::getIntArray(llvm::StringRef key) const {
  const GgufValue *value = first().find(key);
  if (!value)
    return std::nullopt;
  uint64_t size = fixedSize(value->elementType);
  if (value->type != GgufType::Array || size == 0 || value->elementType == GgufType::F32 ||
      value->elementType == GgufType::F64)
    return mismatch(*value, "an array of integers");
  std::vector<int64_t> numbers(value->count);
  for (uint64_t i = 0; i < value->count; ++i) {
    const uint8_t *data = value->payload.data() + i * size;
    if (value->elementType == GgufType::Bool) {
      numbers[i] = *data != 0;
      continue;
    }
    Integer integer = *readInteger(value->elementType, data);
    if (!integer.negative && integer.bits > INT64_MAX)
      return makeError("{0}: element {1} of the key {2} is {3}, which is too large", name, i,
                       quote(key), integer.bits);
    numbers[i] = static_cast<int64_t>(integer.bits);
  }
  return numbers;
}

//===----------------------------------------------------------------------===//
// Opening
//===----------------------------------------------------------------------===//

static llvm::Expected<Part> openPart(llvm::StringRef path) {
  Part part;
  llvm::Expected<std::unique_ptr<MappedFile>> map = MappedFile::open(path);
  if (!map)
    return map.takeError();
  part.map = std::move(*map);
  part.bytes = part.map->bytes();
  llvm::Expected<GgufFile> file = readGguf(path, part.bytes);
  if (!file)
    return file.takeError();
  part.file = std::move(*file);
  return std::move(part);
}

// The value of a split.* key, or `otherwise`.
static llvm::Expected<uint64_t> splitKey(llvm::StringRef path, const GgufFile &file,
                                         llvm::StringRef key, uint64_t otherwise) {
  const GgufValue *value = file.find(key);
  if (!value)
    return otherwise;
  std::optional<Integer> integer = readInteger(value->type, value->payload.data());
  if (!integer || integer->negative)
    return makeError("{0}: the key {1} must be an integer of at least 0", path, quote(key));
  return integer->bits;
}

// Checks what file `index` says about itself.
static llvm::Error checkSplit(llvm::StringRef path, const GgufFile &file, uint64_t index,
                              uint64_t count) {
  llvm::Expected<uint64_t> ownIndex = splitKey(path, file, "split.no", 0);
  if (!ownIndex)
    return ownIndex.takeError();
  llvm::Expected<uint64_t> ownCount = splitKey(path, file, "split.count", 1);
  if (!ownCount)
    return ownCount.takeError();
  if (*ownIndex != index || *ownCount != count)
    return makeError("{0}: the file says that it is number {1} of {2} (counted from 0), but "
                     "its name says {3} of {4}; the files of this model don't belong "
                     "together",
                     path, *ownIndex, *ownCount, index, count);
  return llvm::Error::success();
}

// "-00001-of-00003.gguf", counted from 1 as file names do.
static std::string splitSuffix(uint64_t index, uint64_t count) {
  return llvm::formatv("-{0,0+5}-of-{1,0+5}.gguf", index + 1, count).str();
}

static llvm::Error openOthers(GgufModel &model, llvm::StringRef path, uint64_t count) {
  std::string suffix = splitSuffix(0, count);
  llvm::StringRef prefix = path;
  if (!prefix.consume_back(suffix))
    return makeError("{0}: the model is split into {1} files, so the name of the first "
                     "must end in {2}; rename the files or merge them",
                     path, count, suffix);
  for (uint64_t index = 1; index < count; ++index) {
    std::string other = prefix.str() + splitSuffix(index, count);
    llvm::Expected<Part> part = openPart(other);
    if (!part)
      return part.takeError();
    if (llvm::Error error = checkSplit(other, part->file, index, count))
      return error;
    if (llvm::Error error = model.add(std::move(*part)))
      return error;
  }
  return llvm::Error::success();
}

static llvm::Expected<std::unique_ptr<ModelSource>> finish(llvm::StringRef path, Part part) {
  // What a file name can express, and far above what people split into.
  constexpr uint64_t kMaxFiles = 99999;
  auto model = std::make_unique<GgufModel>(path);
  bool fromFile = part.map != nullptr;
  if (llvm::Error error = model->add(std::move(part)))
    return std::move(error);

  llvm::Expected<uint64_t> count = splitKey(path, model->first(), "split.count", 1);
  if (!count)
    return count.takeError();
  if (*count > 1) {
    llvm::Expected<uint64_t> index = splitKey(path, model->first(), "split.no", 0);
    if (!index)
      return index.takeError();
    if (*count > kMaxFiles || *index >= *count)
      return makeError("{0}: the file says that it is number {1} of {2} (counted from 0), "
                       "which is impossible",
                       path, *index, *count);
    if (*index != 0 || !fromFile)
      return makeError("{0}: this is file {1} of {2} of a split model; give the first one, "
                       "whose name ends in {3}",
                       path, *index + 1, *count, splitSuffix(0, *count));
    if (llvm::Error error = openOthers(*model, path, *count))
      return std::move(error);
  }

  llvm::Expected<uint64_t> total =
      splitKey(path, model->first(), "split.tensors.count", model->tensors().size());
  if (!total)
    return total.takeError();
  if (*total != model->tensors().size())
    return makeError("{0}: the model announces {1} tensors, but its files hold {2}", path, *total,
                     model->tensors().size());
  return std::move(model);
}

llvm::Expected<std::unique_ptr<ModelSource>> izhc::openGguf(llvm::StringRef path) {
  llvm::Expected<Part> part = openPart(path);
  if (!part)
    return part.takeError();
  return finish(path, std::move(*part));
}

llvm::Expected<std::unique_ptr<ModelSource>> izhc::openGgufBytes(llvm::StringRef name,
                                                                 llvm::ArrayRef<uint8_t> bytes) {
  llvm::Expected<GgufFile> file = readGguf(name, bytes);
  if (!file)
    return file.takeError();
  return finish(name, Part{nullptr, bytes, std::move(*file)});
}
