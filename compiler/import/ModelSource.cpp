// What ModelSource derives from its virtual getters: required keys, defaults
// and tensors of a given shape, each with the sentence for their absence.

#include "compiler/import/ModelSource.h"

#include "compiler/support/Error.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <cstring>

using namespace izhc;

int64_t TensorInfo::rows() const {
  int64_t rows = 1;
  for (int64_t size : llvm::ArrayRef(shape).drop_front())
    rows *= size;
  return rows;
}

uint64_t TensorInfo::rowBytes() const {
  return format ? static_cast<uint64_t>(cols()) / format->blockWeights * format->blockBytes : 0;
}

void TensorInfo::readRows(int64_t first, int64_t count, uint8_t *out) const {
  if (reader)
    reader->read(first, count, out);
  else
    std::memcpy(out, data + first * rowBytes(), count * rowBytes());
}

std::string ModelSource::keyPlace(llvm::StringRef key) const {
  return llvm::formatv("{0}: the key {1}", fileName(), quote(key)).str();
}

// Turns a getter's result into one that must be there.
template <typename T>
static llvm::Expected<T> require(const ModelSource &source, llvm::StringRef key,
                                 llvm::Expected<std::optional<T>> value) {
  if (!value)
    return value.takeError();
  if (!*value)
    return makeError("{0} is missing, which this kind of model needs; is the file complete?",
                     source.keyPlace(key));
  return std::move(**value);
}

static llvm::Error checkRange(const ModelSource &source, llvm::StringRef key, uint64_t value,
                              uint64_t low, uint64_t high) {
  if (value >= low && value <= high)
    return llvm::Error::success();
  return makeError("{0} is {1}, but must lie between {2} and {3}", source.keyPlace(key), value, low,
                   high);
}

llvm::Expected<uint64_t> ModelSource::requireUInt(llvm::StringRef key, uint64_t low,
                                                  uint64_t high) const {
  llvm::Expected<uint64_t> value = require(*this, key, getUInt(key));
  if (!value)
    return value;
  if (llvm::Error error = checkRange(*this, key, *value, low, high))
    return std::move(error);
  return value;
}

llvm::Expected<double> ModelSource::requireFloat(llvm::StringRef key) const {
  return require(*this, key, getFloat(key));
}

llvm::Expected<llvm::StringRef> ModelSource::requireString(llvm::StringRef key) const {
  return require(*this, key, getString(key));
}

llvm::Expected<std::vector<llvm::StringRef>>
ModelSource::requireStringArray(llvm::StringRef key) const {
  return require(*this, key, getStringArray(key));
}

llvm::Expected<uint64_t> ModelSource::getUIntOr(llvm::StringRef key, uint64_t otherwise,
                                                uint64_t low, uint64_t high) const {
  llvm::Expected<std::optional<uint64_t>> value = getUInt(key);
  if (!value)
    return value.takeError();
  if (!*value)
    return otherwise;
  if (llvm::Error error = checkRange(*this, key, **value, low, high))
    return std::move(error);
  return **value;
}

llvm::Expected<double> ModelSource::getFloatOr(llvm::StringRef key, double otherwise) const {
  llvm::Expected<std::optional<double>> value = getFloat(key);
  if (!value)
    return value.takeError();
  return value->value_or(otherwise);
}

llvm::Expected<bool> ModelSource::getBoolOr(llvm::StringRef key, bool otherwise) const {
  llvm::Expected<std::optional<bool>> value = getBool(key);
  if (!value)
    return value.takeError();
  return value->value_or(otherwise);
}

static llvm::Error unknownType(const ModelSource &source, const TensorInfo &tensor) {
  std::string type =
      tensor.storedType.empty() ? ggufTypeName(tensor.ggufType).str() : quote(tensor.storedType);
  type = type.empty() ? "has type number " + std::to_string(tensor.ggufType) : "is of type " + type;
  auto known = llvm::map_range(allFormats(), [](auto *format) { return format->name.str(); });
  return makeError("{0}: the tensor {1} {2}, which can't be compiled yet; use a file in another "
                   "quantization, of {3}",
                   source.fileName(), quote(source.tensorName(tensor.name)), type,
                   llvm::join(known, ", "));
}

llvm::Expected<const TensorInfo *> ModelSource::requireTensor(llvm::StringRef name) const {
  const TensorInfo *tensor = findTensor(name);
  if (!tensor)
    return makeError("{0}: the tensor {1} is missing, which this kind of model needs; is "
                     "the file complete?",
                     fileName(), quote(tensorName(name)));
  if (!tensor->format)
    return unknownType(*this, *tensor);
  return tensor;
}

static std::string shapeText(llvm::ArrayRef<int64_t> shape) {
  return llvm::join(llvm::map_range(shape, [](int64_t size) { return std::to_string(size); }),
                    " x ");
}

llvm::Expected<const TensorInfo *> ModelSource::requireTensor(llvm::StringRef name,
                                                              llvm::ArrayRef<int64_t> shape) const {
  llvm::Expected<const TensorInfo *> tensor = requireTensor(name);
  if (!tensor)
    return tensor;
  auto dropOnes = [](llvm::ArrayRef<int64_t> sizes) {
    while (sizes.size() > 1 && sizes.back() == 1)
      sizes = sizes.drop_back();
    return sizes;
  };
  if (dropOnes((*tensor)->shape) != dropOnes(shape))
    return makeError("{0}: the tensor {1} is {2}, but its configuration asks for {3} (columns "
                     "first)",
                     fileName(), quote(tensorName(name)), shapeText((*tensor)->shape),
                     shapeText(shape));
  return tensor;
}
