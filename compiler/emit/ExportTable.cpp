// The section: whether it is compressed (u32), size of the content (u64),
// content. The content: size (u64) and bytes of the GGUF header, number of
// tensors (u32), of each: number of weights (u32), these (u32), size (u64), and
// bytes if there are no weights.

#include "compiler/emit/ExportTable.h"
#include "compiler/import/ByteReader.h"
#include "compiler/import/GgufFile.h"
#include "compiler/support/Error.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Compression.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>

namespace izhc::emit {
namespace {

// Tensors that the plan has turned into something else are tables of
// frequencies and the like.
constexpr uint64_t kMostInline = 1 << 20;
// Of all experts of the largest models.
constexpr int64_t kMostRows = 1 << 28;
// Far above any vocabulary, and below what would hurt. And a small file may not
// ask for much: keys shrink to a tenth, at the most to a hundredth.
constexpr uint64_t kMostContent = 256 << 20, kMostAtOnce = 1 << 20, kMostRatio = 512;

class Bytes {
public:
  template <typename T> Bytes &put(T value) {
    uint8_t raw[sizeof(T)];
    memcpy(raw, &value, sizeof(T));
    bytes.insert(bytes.end(), raw, raw + sizeof(T));
    return *this;
  }
  Bytes &append(llvm::ArrayRef<uint8_t> more) {
    bytes.insert(bytes.end(), more.begin(), more.end());
    return *this;
  }
  Bytes &string(llvm::StringRef text) {
    put<uint64_t>(text.size());
    return append({reinterpret_cast<const uint8_t *>(text.data()), text.size()});
  }
  std::vector<uint8_t> bytes;
};

constexpr uint32_t kGgufMagic = 0x46554747, kGgufVersion = 3;

// Keys that are of the file and not of the model.
bool isOfTheFile(llvm::StringRef key) {
  return key == "general.alignment" || key.starts_with("split.");
}

using Places = llvm::StringMap<std::vector<uint32_t>>;

// The tensors' places in the artifact: matrices, or a vector that is the
// tensor's own values.
Places placesOf(const Plan &plan) {
  Places places;
  uint32_t number = 0;
  for (const Weight &weight : plan.weights)
    places[weight.name].push_back(number++);
  for (const Constant &constant : plan.constants) {
    if (constant.values.empty())
      places[constant.name].push_back(number);
    ++number;
  }
  return places;
}

// Whether these matrices have every row of the tensor, and each once.
bool shareRows(const TensorInfo &info, const Plan &plan, llvm::ArrayRef<uint32_t> numbers) {
  llvm::BitVector seen(unsigned(info.rows()));
  for (uint32_t number : numbers) {
    if (number >= plan.weights.size())
      return false;
    const Weight &weight = plan.weights[number];
    if (weight.format != info.format || weight.cols != info.cols())
      return false;
    for (uint64_t row = 0; row < uint64_t(weight.count * weight.rows); ++row) {
      uint64_t source = sourceRow(weight.view, row);
      if (source >= seen.size() || seen.test(unsigned(source)))
        return false;
      seen.set(unsigned(source));
    }
  }
  return seen.all();
}

// GGUF files hold vectors as float32.
void widen(const FormatSpec &format, ExportTable::Tensor &tensor, uint32_t &type) {
  std::vector<float> values(tensor.data.size() / format.blockBytes * format.blockWeights);
  decodeBlocks(format, tensor.data.data(), values.size() / format.blockWeights, values.data());
  type = findFormat("f32")->ggufType;
  tensor.size = values.size() * 4;
  tensor.data.resize(tensor.size);
  memcpy(tensor.data.data(), values.data(), tensor.size);
}

// False if the tensor is neither in the plan nor small.
bool placeTensor(const TensorInfo &info, bool ofFolder, const Plan &plan, const Places &places,
                 ExportTable::Tensor &tensor, uint32_t &type) {
  auto found = places.find(info.name);
  type = info.ggufType;
  if (found != places.end() && found->second[0] < plan.weights.size()) {
    tensor = {found->second, info.bytes, {}};
    return info.format && info.rows() <= kMostRows && shareRows(info, plan, found->second);
  }
  if (found != places.end()) {
    type = findFormat("f32")->ggufType;
    tensor = {{found->second[0]}, uint64_t(info.elements()) * 4, {}};
    return plan.constants[found->second[0] - plan.weights.size()].count ==
           uint64_t(info.elements());
  }
  if (!info.format || info.bytes > kMostInline)
    return false;
  tensor = {{}, info.bytes, std::vector<uint8_t>(info.bytes)};
  info.readRows(0, info.rows(), tensor.data.data());
  if (info.shape.size() == 1 && ofFolder)
    widen(*info.format, tensor, type);
  return true;
}

std::vector<uint8_t> compressed(llvm::ArrayRef<uint8_t> content) {
  Bytes section;
  bool packs = llvm::compression::zstd::isAvailable();
  section.put<uint32_t>(packs).put<uint64_t>(content.size());
  if (!packs)
    return section.append(content).bytes;
  llvm::SmallVector<uint8_t, 0> packed;
  llvm::compression::zstd::compress(content, packed, llvm::compression::zstd::BestSizeCompression);
  return section.append(packed).bytes;
}

} // namespace

std::vector<uint8_t> buildExportTable(const ModelSource &source, const Plan &plan,
                                      llvm::ArrayRef<ExportKey> more) {
  std::vector<ExportKey> keys = source.exportKeys();
  if (keys.empty())
    return {};
  llvm::append_range(keys, more);
  llvm::erase_if(keys, [](const ExportKey &key) { return isOfTheFile(key.name); });
  Bytes header, table;
  header.put(kGgufMagic).put(kGgufVersion);
  header.put<uint64_t>(source.tensors().size()).put<uint64_t>(keys.size());
  for (const ExportKey &key : keys)
    header.string(key.name).append(key.value);
  Places places = placesOf(plan);
  bool ofFolder = source.companion("config.json").has_value();
  table.put<uint32_t>(source.tensors().size());
  uint64_t offset = 0;
  for (const TensorInfo &info : source.tensors()) {
    ExportTable::Tensor tensor;
    uint32_t type = 0;
    if (!placeTensor(info, ofFolder, plan, places, tensor, type))
      return {};
    header.string(info.name).put<uint32_t>(info.shape.size());
    for (int64_t size : info.shape)
      header.put<uint64_t>(size);
    header.put(type).put(offset);
    offset = llvm::alignTo(offset + tensor.size, ExportTable::kAlignment);
    table.put<uint32_t>(tensor.weights.size());
    for (uint32_t weight : tensor.weights)
      table.put(weight);
    table.put(tensor.size).append(tensor.data);
  }
  header.bytes.resize(llvm::alignTo(header.bytes.size(), ExportTable::kAlignment));
  Bytes content;
  content.put<uint64_t>(header.bytes.size()).append(header.bytes).append(table.bytes);
  return content.bytes.size() <= kMostContent ? compressed(content.bytes) : std::vector<uint8_t>();
}

static llvm::Expected<std::vector<uint8_t>> contentOf(llvm::ArrayRef<uint8_t> section) {
  auto malformed = [] { return makeError("the table for export is malformed"); };
  if (section.size() < 12)
    return malformed();
  uint32_t packed = ByteReader::decode<uint32_t>(section.data());
  uint64_t size = ByteReader::decode<uint64_t>(section.data() + 4);
  llvm::ArrayRef<uint8_t> rest = section.drop_front(12);
  if (packed > 1 || size > kMostContent || size > kMostAtOnce + kMostRatio * rest.size())
    return malformed();
  if (!packed)
    return size == rest.size() ? llvm::Expected<std::vector<uint8_t>>(rest.vec()) : malformed();
  std::vector<uint8_t> content(size);
  size_t got = size;
  if (!llvm::compression::zstd::isAvailable())
    return makeError("the table for export is compressed, and this izhc was built without zstd");
  if (llvm::Error error = llvm::compression::zstd::decompress(rest, content.data(), got)) {
    llvm::consumeError(std::move(error));
    return malformed();
  }
  return got == size ? llvm::Expected<std::vector<uint8_t>>(std::move(content)) : malformed();
}

// The header is written as it is, so it must be that of a GGUF file with the
// tensors of the table.
static llvm::Error checkHeader(const ExportTable &table) {
  llvm::Expected<GgufHeader> header = readGgufHeader("the table for export", table.header);
  if (!header)
    return header.takeError();
  auto malformed = [] {
    return makeError("the table for export has the header of a GGUF file with other tensors");
  };
  if (header->bytes != table.header.size() || header->alignment != ExportTable::kAlignment ||
      header->tensors.size() != table.tensors.size())
    return malformed();
  uint64_t offset = 0;
  for (auto [stored, tensor] : llvm::zip_equal(header->tensors, table.tensors)) {
    if (!stored.bytes || stored.bytes != tensor.size || stored.offset != offset)
      return malformed();
    offset = llvm::alignTo(offset + tensor.size, ExportTable::kAlignment);
  }
  return llvm::Error::success();
}

llvm::Expected<ExportTable> readExportTable(llvm::ArrayRef<uint8_t> section) {
  llvm::Expected<std::vector<uint8_t>> content = contentOf(section);
  if (!content)
    return content.takeError();
  llvm::ArrayRef<uint8_t> left = *content;
  bool ok = true;
  auto take = [&](uint64_t count) {
    ok &= count <= left.size();
    llvm::ArrayRef<uint8_t> taken = left.take_front(ok ? count : 0);
    left = left.drop_front(taken.size());
    return taken;
  };
  auto number = [&]<typename T>(T) {
    llvm::ArrayRef<uint8_t> raw = take(sizeof(T));
    return ok ? ByteReader::decode<T>(raw.data()) : T(0);
  };
  ExportTable table;
  table.header = take(number(uint64_t())).vec();
  uint32_t count = number(uint32_t());
  for (uint32_t i = 0; i < count && ok; ++i) {
    ExportTable::Tensor tensor;
    uint32_t weights = number(uint32_t());
    for (uint32_t j = 0; j < weights && ok; ++j)
      tensor.weights.push_back(number(uint32_t()));
    tensor.size = number(uint64_t());
    if (ok && weights == 0)
      tensor.data = take(tensor.size).vec();
    table.tensors.push_back(std::move(tensor));
  }
  if (!ok || !left.empty())
    return makeError("the table for export is malformed");
  if (llvm::Error error = checkHeader(table))
    return std::move(error);
  return std::move(table);
}

} // namespace izhc::emit
