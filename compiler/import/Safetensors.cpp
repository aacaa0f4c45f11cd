// Reads and checks the header of a safetensors file.

#include "compiler/import/Safetensors.h"

#include "compiler/import/ByteReader.h"
#include "compiler/support/Error.h"
#include "compiler/support/Json.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace izhc;

// Bits of one value; 0 for a type that the format doesn't have.
static unsigned typeBits(llvm::StringRef type) {
  static constexpr std::pair<llvm::StringLiteral, unsigned> types[] = {
      {"F64", 64},    {"I64", 64},    {"U64", 64},    {"F32", 32}, {"I32", 32},
      {"U32", 32},    {"F16", 16},    {"BF16", 16},   {"I16", 16}, {"U16", 16},
      {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E8M0", 8}, {"I8", 8},   {"U8", 8},
      {"BOOL", 8},    {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F4", 4},
  };
  for (auto [name, bits] : types)
    if (name == type)
      return bits;
  return 0;
}

namespace {

class HeaderReader {
public:
  HeaderReader(llvm::StringRef name, llvm::ArrayRef<uint8_t> data) : name(name), data(data) {}

  llvm::Expected<std::vector<StoredTensor>> run(const Json &header) {
    if (!header.isObject())
      return makeError("{0}: the header is no JSON object; is this a safetensors file?", name);
    if (header.items().size() > SafetensorsLimits::kTensors)
      return makeError("{0}: the header lists {1} tensors, but at most {2} are allowed", name,
                       header.items().size(), SafetensorsLimits::kTensors);
    for (size_t i = 0; i < header.items().size(); ++i)
      if (header.key(i) != "__metadata__")
        if (llvm::Error error = addTensor(header.key(i), header.items()[i]))
          return std::move(error);
    if (llvm::Error error = checkOverlap())
      return std::move(error);
    return std::move(tensors);
  }

private:
  llvm::Error addTensor(llvm::StringRef key, const Json &entry) {
    StoredTensor tensor;
    tensor.name = key.str();
    if (key.empty() || key.size() > SafetensorsLimits::kNameLength)
      return makeError("{0}: a tensor's name has {1} bytes, but 1 to {2} are allowed", name,
                       key.size(), SafetensorsLimits::kNameLength);
    const Json *type = entry.find("dtype");
    if (!type || !type->asString())
      return makeError("{0}: the tensor {1} has no 'dtype'", name, quote(key));
    tensor.type = type->asString()->str();
    if (llvm::Error error = readShape(entry, tensor))
      return error;
    if (llvm::Error error = place(entry, tensor))
      return error;
    // Nothing can be asked of a tensor without values.
    if (!tensor.bytes.empty())
      tensors.push_back(std::move(tensor));
    return llvm::Error::success();
  }

  llvm::Error readShape(const Json &entry, StoredTensor &tensor) {
    const Json *shape = entry.find("shape");
    if (!shape || !shape->isArray() || shape->items().size() > SafetensorsLimits::kRank)
      return makeError("{0}: the 'shape' of the tensor {1} is no list of up to {2} sizes", name,
                       quote(tensor.name), SafetensorsLimits::kRank);
    for (const Json &size : shape->items()) {
      std::optional<int64_t> value = size.asInt();
      if (!value || *value < 0 || llvm::MulOverflow(elements(tensor), *value, product))
        return makeError("{0}: the 'shape' of the tensor {1} holds sizes that are impossible", name,
                         quote(tensor.name));
      tensor.shape.push_back(*value);
    }
    return llvm::Error::success();
  }

  static int64_t elements(const StoredTensor &tensor) {
    int64_t count = 1;
    for (int64_t size : tensor.shape)
      count *= size;
    return count;
  }

  llvm::Error place(const Json &entry, StoredTensor &tensor) {
    const Json *offsets = entry.find("data_offsets");
    std::optional<uint64_t> begin, end;
    if (offsets && offsets->isArray() && offsets->items().size() == 2) {
      begin = offsets->items()[0].asUInt();
      end = offsets->items()[1].asUInt();
    }
    if (!begin || !end || *begin > *end)
      return makeError("{0}: the 'data_offsets' of the tensor {1} are no begin and end", name,
                       quote(tensor.name));
    if (*end > data.size())
      return makeError("{0}: the tensor {1} ends at byte {2} of the data, but there are {3}; the "
                       "file is incomplete, fetch it again",
                       name, quote(tensor.name), *end, data.size());
    unsigned bits = typeBits(tensor.type);
    uint64_t needed = llvm::SaturatingMultiply<uint64_t>(elements(tensor), bits) / 8;
    if (bits != 0 && needed != *end - *begin)
      return makeError("{0}: the tensor {1} has {2} bytes, but its shape and type {3} need {4}",
                       name, quote(tensor.name), *end - *begin, quote(tensor.type), needed);
    tensor.bytes = data.slice(*begin, *end - *begin);
    return llvm::Error::success();
  }

  // Tensors that share bytes would let a small file ask for any amount of work.
  llvm::Error checkOverlap() const {
    std::vector<const StoredTensor *> sorted;
    for (const StoredTensor &tensor : tensors)
      sorted.push_back(&tensor);
    llvm::sort(sorted, [](const StoredTensor *a, const StoredTensor *b) {
      return a->bytes.begin() < b->bytes.begin();
    });
    for (size_t i = 1; i < sorted.size(); ++i)
      if (sorted[i]->bytes.begin() < sorted[i - 1]->bytes.end())
        return makeError("{0}: the tensors {1} and {2} overlap", name, quote(sorted[i - 1]->name),
                         quote(sorted[i]->name));
    return llvm::Error::success();
  }

  llvm::StringRef name;
  llvm::ArrayRef<uint8_t> data;
  std::vector<StoredTensor> tensors;
  int64_t product = 0;
};

} // namespace

llvm::Expected<std::vector<StoredTensor>> izhc::readSafetensors(llvm::StringRef name,
                                                                llvm::ArrayRef<uint8_t> bytes) {
  ByteReader in(bytes);
  uint64_t length;
  if (!in.read(length) || length > in.left())
    return makeError("{0}: the file has {1} bytes, fewer than its header needs; it is incomplete, "
                     "fetch it again (a file of a few lines is a pointer that git-lfs left)",
                     name, bytes.size());
  if (length > SafetensorsLimits::kHeaderBytes)
    return makeError("{0}: the header has {1} bytes, but at most {2} are allowed", name, length,
                     SafetensorsLimits::kHeaderBytes);
  llvm::Expected<Json> header = parseJson(name, bytes.slice(8, length));
  if (!header)
    return header.takeError();
  return HeaderReader(name, bytes.drop_front(8 + length)).run(*header);
}
