// The reader of one GGUF file: header, metadata, tensor list, data section.

#include "compiler/import/GgufFile.h"

#include "compiler/import/ByteReader.h"
#include "compiler/support/Error.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace izhc;

uint64_t izhc::fixedSize(GgufType type) {
  switch (type) {
  case GgufType::U8:
  case GgufType::I8:
  case GgufType::Bool:
    return 1;
  case GgufType::U16:
  case GgufType::I16:
    return 2;
  case GgufType::U32:
  case GgufType::I32:
  case GgufType::F32:
    return 4;
  case GgufType::U64:
  case GgufType::I64:
  case GgufType::F64:
    return 8;
  case GgufType::String:
  case GgufType::Array:
    return 0;
  }
  return 0;
}

namespace {
class Reader {
public:
  Reader(llvm::StringRef name, llvm::ArrayRef<uint8_t> bytes)
      : name(name), bytes(bytes), in(bytes) {}

  llvm::Expected<GgufFile> run() {
    if (llvm::Error error = readLists())
      return std::move(error);
    if (llvm::Error error = placeTensors())
      return std::move(error);
    return std::move(file);
  }

  llvm::Expected<GgufHeader> header() {
    if (llvm::Error error = readLists())
      return std::move(error);
    GgufHeader header = {llvm::alignTo(in.position(), alignment), alignment, {}};
    for (auto [tensor, offset] : llvm::zip_equal(file.tensors, offsets)) {
      llvm::Expected<uint64_t> size = sizeOf(tensor);
      if (!size)
        return size.takeError();
      header.tensors.push_back({*size, offset});
    }
    return std::move(header);
  }

private:
  // Everything before the tensors' bytes.
  llvm::Error readLists() {
    if (llvm::Error error = readHeader())
      return error;
    for (uint64_t i = 0; i < valueCount; ++i)
      if (llvm::Error error = readValue())
        return error;
    if (llvm::Error error = readAlignment())
      return error;
    for (uint64_t i = 0; i < tensorCount; ++i)
      if (llvm::Error error = readTensor())
        return error;
    return llvm::Error::success();
  }

  llvm::Expected<uint64_t> sizeOf(const TensorInfo &tensor);
  llvm::Error readHeader();
  llvm::Error readValue();
  llvm::Error readType(llvm::StringRef key, GgufType &type);
  llvm::Error skipPayload(GgufValue &value, GgufType type, unsigned depth);
  llvm::Error skipArray(GgufValue &value, unsigned depth);
  llvm::Error readAlignment();
  llvm::Error readTensor();
  llvm::Error readShape(TensorInfo &tensor);
  llvm::Error placeTensors();
  llvm::Error placeTensor(TensorInfo &tensor, uint64_t offset, uint64_t dataStart);
  llvm::Error checkOverlap();

  llvm::Error truncated(const llvm::Twine &what) {
    return makeError("{0}: the file ends at byte {1} inside of {2}; it is incomplete, "
                     "fetch it again",
                     name, bytes.size(), what.str());
  }

  llvm::StringRef name;
  llvm::ArrayRef<uint8_t> bytes;
  ByteReader in;
  GgufFile file;
  uint64_t valueCount = 0, tensorCount = 0, alignment = 32;
  // As the file gives them, relative to the data section.
  std::vector<uint64_t> offsets;
  llvm::DenseMap<llvm::StringRef, size_t> names;
};
} // namespace

//===----------------------------------------------------------------------===//
// Header
//===----------------------------------------------------------------------===//

llvm::Error Reader::readHeader() {
  uint32_t magic, version;
  constexpr uint32_t kGguf = 0x46554747;
  if (!in.read(magic))
    return makeError("{0}: the file has {1} bytes and is no GGUF file", name, bytes.size());
  if (magic != kGguf)
    return makeError("{0}: the file begins with {1} instead of 'GGUF'; izhc reads GGUF "
                     "files",
                     name, quote(llvm::toStringRef(bytes.take_front(4))));
  if (!in.read(version))
    return truncated("the header");
  // A small number in the other byte order.
  if (version != 0 && (version & 0xffff) == 0)
    return makeError("{0}: the file is a big-endian GGUF; convert it to little-endian", name);
  if (version != 2 && version != 3)
    return makeError("{0}: the file has GGUF version {1}, but izhc reads versions 2 and 3; "
                     "convert the model again with a current tool",
                     name, version);
  file.version = version;
  if (!in.read(tensorCount) || !in.read(valueCount))
    return truncated("the header");
  if (valueCount > GgufLimits::kKeys)
    return makeError("{0}: the header announces {1} metadata keys, but at most {2} are "
                     "supported",
                     name, valueCount, GgufLimits::kKeys);
  if (tensorCount > GgufLimits::kTensors)
    return makeError("{0}: the header announces {1} tensors, but at most {2} are supported", name,
                     tensorCount, GgufLimits::kTensors);
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Metadata
//===----------------------------------------------------------------------===//

llvm::Error Reader::readType(llvm::StringRef key, GgufType &type) {
  uint32_t number;
  if (!in.read(number))
    return truncated("the metadata");
  if (number > static_cast<uint32_t>(GgufType::F64))
    return makeError("{0}: the key {1} has type number {2}, but metadata types are 0 to 12", name,
                     quote(key), number);
  type = static_cast<GgufType>(number);
  return llvm::Error::success();
}

llvm::Error Reader::readValue() {
  GgufValue value;
  if (!in.readString(value.key))
    return truncated("the metadata");
  if (value.key.empty() || value.key.size() > GgufLimits::kKeyLength)
    return makeError("{0}: a metadata key has {1} bytes, but 1 to {2} are allowed", name,
                     value.key.size(), GgufLimits::kKeyLength);
  if (!file.keys.try_emplace(value.key, file.values.size()).second)
    return makeError("{0}: the key {1} appears twice", name, quote(value.key));
  if (llvm::Error error = readType(value.key, value.type))
    return error;
  if (llvm::Error error = skipPayload(value, value.type, 0))
    return error;
  file.values.push_back(value);
  return llvm::Error::success();
}

// Walks over one value of `type`. At depth 0 it is the key's own value, whose
// place (and array type) is noted in `value`; deeper ones are only checked.
llvm::Error Reader::skipPayload(GgufValue &value, GgufType type, unsigned depth) {
  if (type == GgufType::Array)
    return skipArray(value, depth);
  uint64_t start = in.position();
  if (type == GgufType::String) {
    llvm::StringRef text;
    if (!in.readString(text))
      return truncated("the value of " + quote(value.key));
  } else if (!in.skip(fixedSize(type))) {
    return truncated("the value of " + quote(value.key));
  }
  if (depth == 0)
    value.payload = bytes.slice(start, in.position() - start);
  return llvm::Error::success();
}

llvm::Error Reader::skipArray(GgufValue &value, unsigned depth) {
  if (depth == GgufLimits::kArrayDepth)
    return makeError("{0}: the arrays of the key {1} are nested more than {2} deep", name,
                     quote(value.key), GgufLimits::kArrayDepth);
  GgufType type;
  uint64_t count;
  if (llvm::Error error = readType(value.key, type))
    return error;
  if (!in.read(count))
    return truncated("the value of " + quote(value.key));
  uint64_t start = in.position(), size = fixedSize(type);
  if (size != 0) {
    // Division, because count * size may overflow.
    if (count > in.left() / size || !in.skip(count * size))
      return truncated("the value of " + quote(value.key));
  } else {
    // Each element takes at least eight bytes, so the file's length bounds
    // this loop whatever `count` says.
    for (uint64_t i = 0; i < count; ++i)
      if (llvm::Error error = skipPayload(value, type, depth + 1))
        return error;
  }
  if (depth == 0) {
    value.elementType = type;
    value.count = count;
    value.payload = bytes.slice(start, in.position() - start);
  }
  return llvm::Error::success();
}

llvm::Error Reader::readAlignment() {
  const GgufValue *value = file.find("general.alignment");
  if (!value)
    return llvm::Error::success();
  if (value->type != GgufType::U32)
    return makeError("{0}: the key 'general.alignment' must be a u32", name);
  alignment = ByteReader::decode<uint32_t>(value->payload.data());
  if (!llvm::isPowerOf2_64(alignment) || alignment < 8)
    return makeError("{0}: 'general.alignment' is {1}, but must be a power of two from 8 on", name,
                     alignment);
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

llvm::Error Reader::readTensor() {
  TensorInfo tensor;
  if (!in.readString(tensor.name))
    return truncated("the list of tensors");
  if (tensor.name.empty() || tensor.name.size() > GgufLimits::kNameLength)
    return makeError("{0}: a tensor's name has {1} bytes, but 1 to {2} are allowed", name,
                     tensor.name.size(), GgufLimits::kNameLength);
  if (!names.try_emplace(tensor.name, file.tensors.size()).second)
    return makeError("{0}: the tensor {1} appears twice", name, quote(tensor.name));
  if (llvm::Error error = readShape(tensor))
    return error;
  uint64_t offset;
  if (!in.read(tensor.ggufType) || !in.read(offset))
    return truncated("the list of tensors");
  tensor.format = findFormatByGgufType(tensor.ggufType);
  file.tensors.push_back(std::move(tensor));
  offsets.push_back(offset);
  return llvm::Error::success();
}

llvm::Error Reader::readShape(TensorInfo &tensor) {
  uint32_t rank;
  if (!in.read(rank))
    return truncated("the list of tensors");
  if (rank < 1 || rank > 4)
    return makeError("{0}: the tensor {1} has {2} dimensions, but 1 to 4 are supported", name,
                     quote(tensor.name), rank);
  int64_t product = 1;
  for (uint32_t i = 0; i < rank; ++i) {
    uint64_t size;
    if (!in.read(size))
      return truncated("the list of tensors");
    if (size == 0 || size > INT64_MAX ||
        llvm::MulOverflow(product, static_cast<int64_t>(size), product))
      return makeError("{0}: dimension {1} of the tensor {2} is {3}, which is impossible", name, i,
                       quote(tensor.name), size);
    tensor.shape.push_back(static_cast<int64_t>(size));
  }
  return llvm::Error::success();
}

llvm::Error Reader::placeTensors() {
  if (file.tensors.empty())
    return llvm::Error::success();
  // position() is at most the file's length, so this can't overflow.
  uint64_t dataStart = llvm::alignTo(in.position(), alignment);
  if (dataStart > bytes.size())
    return truncated("the padding before the tensors' data");
  for (size_t i = 0; i < file.tensors.size(); ++i)
    if (llvm::Error error = placeTensor(file.tensors[i], offsets[i], dataStart))
      return error;
  return checkOverlap();
}

// In the file; 0 without a format.
llvm::Expected<uint64_t> Reader::sizeOf(const TensorInfo &tensor) {
  const FormatSpec *format = tensor.format;
  if (!format)
    return 0;
  if (tensor.cols() % format->blockWeights != 0)
    return makeError("{0}: the tensor {1} has {2} columns, but its type {3} needs a "
                     "multiple of {4}",
                     name, quote(tensor.name), tensor.cols(), format->name, format->blockWeights);
  // elements() fits in 63 bits; the bytes of its blocks may not.
  uint64_t blocks = static_cast<uint64_t>(tensor.elements()) / format->blockWeights;
  return llvm::SaturatingMultiply<uint64_t>(blocks, format->blockBytes);
}

llvm::Error Reader::placeTensor(TensorInfo &tensor, uint64_t offset, uint64_t dataStart) {
  uint64_t dataBytes = bytes.size() - dataStart;
  if (offset % alignment != 0)
    return makeError("{0}: the data of the tensor {1} begins at offset {2}, which is no "
                     "multiple of the alignment {3}",
                     name, quote(tensor.name), offset, alignment);
  llvm::Expected<uint64_t> size = sizeOf(tensor);
  if (!size)
    return size.takeError();
  if (offset > dataBytes || *size > dataBytes - offset)
    return makeError("{0}: the tensor {1} needs {2} bytes at offset {3}, but the data "
                     "section has {4} bytes; the file is incomplete, fetch it again",
                     name, quote(tensor.name), *size, offset, dataBytes);
  if (tensor.format) {
    tensor.data = bytes.data() + dataStart + offset;
    tensor.bytes = *size;
  }
  return llvm::Error::success();
}

// Tensors that share bytes would let a small file ask for any amount of work.
llvm::Error Reader::checkOverlap() {
  std::vector<const TensorInfo *> sorted;
  for (const TensorInfo &tensor : file.tensors)
    if (tensor.data)
      sorted.push_back(&tensor);
  llvm::sort(sorted, [](const TensorInfo *a, const TensorInfo *b) { return a->data < b->data; });
  for (size_t i = 1; i < sorted.size(); ++i) {
    const TensorInfo *before = sorted[i - 1], *after = sorted[i];
    if (static_cast<uint64_t>(after->data - before->data) < before->bytes)
      return makeError("{0}: the tensors {1} and {2} overlap", name, quote(before->name),
                       quote(after->name));
  }
  return llvm::Error::success();
}

llvm::Expected<GgufHeader> izhc::readGgufHeader(llvm::StringRef name,
                                                llvm::ArrayRef<uint8_t> bytes) {
  return Reader(name, bytes).header();
}

llvm::Expected<GgufFile> izhc::readGguf(llvm::StringRef name, llvm::ArrayRef<uint8_t> bytes) {
  return Reader(name, bytes).run();
}
