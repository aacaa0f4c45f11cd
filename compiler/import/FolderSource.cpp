// Opens the files of a model folder and lists what is in them.

#include "compiler/import/FolderSource.h"

#include "compiler/import/Hash.h"
#include "compiler/support/Error.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace izhc;

namespace {

constexpr llvm::StringLiteral kConfig("config.json");
constexpr llvm::StringLiteral kIndex("model.safetensors.index.json");
constexpr llvm::StringLiteral kWeights(".safetensors");
// What else of a folder belongs to a language model.
constexpr llvm::StringLiteral kCompanions[] = {
    kConfig,
    kIndex,
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "generation_config.json",
    "chat_template.jinja",
    "chat_template.json",
};
constexpr size_t kMostFiles = 10000;

llvm::Expected<FolderFile> openFile(llvm::StringRef folder, llvm::StringRef fileName) {
  llvm::SmallString<256> path(folder);
  llvm::sys::path::append(path, fileName);
  auto map = MappedFile::open(path);
  if (!map)
    return map.takeError();
  FolderFile file{fileName.str(), std::move(*map), {}};
  file.bytes = file.map->bytes();
  return std::move(file);
}

// Files of weights that the folder has beside each other. Other names than the
// usual ones are copies in another layout.
llvm::Expected<std::vector<std::string>> weightFiles(llvm::StringRef folder) {
  std::vector<std::string> found;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator at(folder, error), end; at != end && !error;
       at.increment(error)) {
    llvm::StringRef file = llvm::sys::path::filename(at->path());
    if (file.ends_with(kWeights) && file.starts_with("model"))
      found.push_back(file.str());
    if (found.size() > kMostFiles)
      return makeError("{0}: the folder holds more than {1} files of weights", folder, kMostFiles);
  }
  if (error)
    return makeError("{0}: the folder can't be listed: {1}", folder, error.message());
  llvm::sort(found);
  // One file with everything, beside parts of it.
  if (llvm::is_contained(found, "model.safetensors"))
    return std::vector<std::string>{"model.safetensors"};
  return found;
}

} // namespace

llvm::Expected<std::unique_ptr<FolderSource>> FolderSource::open(llvm::StringRef path) {
  std::vector<FolderFile> files;
  std::vector<std::string> wanted;
  for (llvm::StringRef companion : kCompanions) {
    llvm::SmallString<256> file(path);
    llvm::sys::path::append(file, companion);
    if (llvm::sys::fs::exists(file))
      wanted.push_back(companion.str());
  }
  if (!llvm::is_contained(wanted, kConfig))
    return makeError("{0}: the folder holds no config.json; give a .gguf file, or a folder with "
                     "config.json and safetensors",
                     path);
  auto weights = weightFiles(path);
  if (!weights)
    return weights.takeError();
  wanted.insert(wanted.end(), weights->begin(), weights->end());
  for (const std::string &one : wanted) {
    auto file = openFile(path, one);
    if (!file)
      return file.takeError();
    files.push_back(std::move(*file));
  }
  return open(path, std::move(files));
}

llvm::Expected<std::unique_ptr<FolderSource>> FolderSource::open(llvm::StringRef name,
                                                                 std::vector<FolderFile> files) {
  std::unique_ptr<FolderSource> source(new FolderSource(name));
  source->files = std::move(files);
  llvm::sort(source->files,
             [](const FolderFile &a, const FolderFile &b) { return a.name < b.name; });
  if (llvm::Error error = source->read())
    return std::move(error);
  return std::move(source);
}

const FolderFile *FolderSource::find(llvm::StringRef fileName) const {
  for (const FolderFile &file : files)
    if (file.name == fileName)
      return &file;
  return nullptr;
}

llvm::Error FolderSource::read() {
  const FolderFile *config = find(kConfig);
  if (!config)
    return makeError("{0}: the folder holds no config.json", name);
  auto parsed = parseJson(name + "/config.json", config->bytes);
  if (!parsed)
    return parsed.takeError();
  configuration = std::move(*parsed);
  if (!configuration.isObject())
    return makeError("{0}/config.json: this is no JSON object", name);
  if (const Json *text = configuration.find("text_config"); text && !text->isNull())
    if (!text->isObject())
      return unexpected("text_config", *text, "an object");
  addMeta("", configuration);
  return readWeights();
}

llvm::Error FolderSource::unexpected(llvm::StringRef path, const Json &found,
                                     const llvm::Twine &expected) const {
  return makeError("{0}/config.json: {1} is {2}, expected {3}; correct the file, or fetch it again",
                   name, quote(path), jsonText(found), expected.str());
}

llvm::Expected<const Json *> FolderSource::setting(llvm::StringRef path) const {
  for (const Json *place : {configuration.find("text_config"), &configuration}) {
    llvm::StringRef rest = path;
    while (place && !place->isNull() && !rest.empty()) {
      if (!place->isObject())
        return unexpected(path.drop_back(rest.size() + 1), *place, "an object");
      llvm::StringRef key;
      std::tie(key, rest) = rest.split('.');
      place = place->find(key);
    }
    if (place && !place->isNull())
      return place;
  }
  return nullptr;
}

llvm::Expected<int64_t> FolderSource::count(llvm::StringRef path) const {
  constexpr int64_t kMost = 1 << 16;
  auto found = setting(path);
  if (!found)
    return found.takeError();
  if (!*found)
    return 0;
  std::optional<int64_t> number = (*found)->asInt();
  if (!number || *number < 0 || *number > kMost)
    return unexpected(path, **found, "an integer from 0 to " + llvm::Twine(kMost));
  return *number;
}

void FolderSource::addMeta(const std::string &prefix, const Json &object) {
  for (size_t i = 0; i < object.items().size(); ++i) {
    std::string key = prefix + object.key(i).str();
    if (object.items()[i].isObject())
      addMeta(key + ".", object.items()[i]);
    else
      meta.emplace_back(std::move(key), &object.items()[i]);
  }
}

llvm::Error FolderSource::readWeights() {
  std::vector<StoredTensor> stored;
  for (const FolderFile &file : files) {
    if (!llvm::StringRef(file.name).ends_with(kWeights))
      continue;
    auto some = readSafetensors(name + "/" + file.name, file.bytes);
    if (!some)
      return some.takeError();
    for (StoredTensor &tensor : *some) {
      auto [place, isNew] = holders.try_emplace(tensor.name, file.name);
      if (!isNew)
        return makeError("{0}: the tensor {1} is in both {2} and {3}", name, quote(tensor.name),
                         quote(place->second), quote(file.name));
      stored.push_back(std::move(tensor));
    }
  }
  if (llvm::Error error = checkIndex())
    return error;
  return addTensors(stored);
}

// What fine-grained scales belong to; 128 x 128 where the config is silent.
llvm::Expected<ScaleBlock> FolderSource::scaleBlock() const {
  ScaleBlock block;
  auto sizes = getIntArray("quantization_config.weight_block_size");
  if (!sizes)
    return sizes.takeError();
  if (!*sizes)
    return block;
  if ((*sizes)->size() != 2 || (**sizes)[0] < 1 || (**sizes)[1] < 1)
    return makeError("{0} is not two sizes of at least 1",
                     keyPlace("quantization_config.weight_block_size"));
  return ScaleBlock{(**sizes)[0], (**sizes)[1]};
}

// The index says which file holds which tensor: a file that is missing, or of
// another download, shows here.
llvm::Error FolderSource::checkIndex() {
  const FolderFile *file = find(kIndex);
  if (!file || find("model.safetensors"))
    return llvm::Error::success();
  std::string indexName = name + "/" + kIndex.str();
  auto index = parseJson(indexName, file->bytes);
  if (!index)
    return index.takeError();
  const Json *map = index->find("weight_map");
  if (!map || !map->isObject())
    return makeError("{0}: there is no object 'weight_map'", indexName);
  for (size_t i = 0; i < map->items().size(); ++i) {
    llvm::StringRef tensor = map->key(i);
    std::optional<llvm::StringRef> holder = map->items()[i].asString();
    if (!holder)
      return makeError("{0}: the file of the tensor {1} is no string", indexName, quote(tensor));
    if (!find(*holder))
      return makeError("{0}: the tensor {1} is in {2}, which is not in the folder; fetch the "
                       "missing files",
                       indexName, quote(tensor), quote(*holder));
    // Tensors without values are in the index, but not among the holders.
    auto found = holders.find(tensor);
    if (found != holders.end() && found->second != *holder)
      return makeError("{0}: the tensor {1} should be in {2}, but is not; the files don't belong "
                       "together",
                       indexName, quote(tensor), quote(*holder));
  }
  return llvm::Error::success();
}

llvm::Error FolderSource::addTensors(llvm::ArrayRef<StoredTensor> stored) {
  auto block = scaleBlock();
  if (!block)
    return block.takeError();
  auto combined = combineStored(
      name, stored, *block, [this](const uint8_t *data, uint64_t bytes) { release(data, bytes); });
  if (!combined)
    return combined.takeError();
  for (CombinedTensor &tensor : *combined) {
    texts.push_back(std::make_unique<std::string>(std::move(tensor.name)));
    TensorInfo info;
    info.name = *texts.back();
    texts.push_back(std::make_unique<std::string>(std::move(tensor.type)));
    info.storedType = *texts.back();
    info.shape = std::move(tensor.shape);
    info.format = tensor.format;
    info.reader = std::move(tensor.reader);
    info.data = tensor.data;
    if (info.format) {
      info.ggufType = info.format->ggufType;
      info.bytes = info.rows() * info.rowBytes();
    }
    if (!tensorNames.try_emplace(info.name, allTensors.size()).second)
      return makeError("{0}: the tensor {1} is there both whole and in parts", name,
                       quote(info.name));
    allTensors.push_back(std::move(info));
  }
  return llvm::Error::success();
}

std::optional<llvm::ArrayRef<uint8_t>> FolderSource::companion(llvm::StringRef fileName) const {
  const FolderFile *file = find(fileName);
  return file ? std::optional<llvm::ArrayRef<uint8_t>>(file->bytes) : std::nullopt;
}

std::string FolderSource::kindName() const {
  size_t weights = llvm::count_if(
      files, [](const FolderFile &f) { return llvm::StringRef(f.name).ends_with(kWeights); });
  return "folder with " + std::to_string(weights) + " safetensors " +
         (weights == 1 ? "file" : "files");
}

std::string FolderSource::keyPlace(llvm::StringRef key) const {
  return llvm::formatv("{0}/config.json: {1}", name, quote(key)).str();
}

uint64_t FolderSource::fileBytes() const {
  uint64_t sum = 0;
  for (const FolderFile &file : files)
    sum += file.bytes.size();
  return sum;
}

std::vector<MetaInfo> FolderSource::metadata() const {
  std::vector<MetaInfo> list;
  for (auto &[key, value] : meta)
    list.push_back({key, jsonKindName(*value), jsonText(*value)});
  return list;
}

const TensorInfo *FolderSource::findTensor(llvm::StringRef tensor) const {
  auto found = tensorNames.find(tensor);
  return found == tensorNames.end() ? nullptr : &allTensors[found->second];
}

void FolderSource::release(const uint8_t *data, uint64_t bytes) const {
  for (const FolderFile &file : files)
    if (file.map && file.map->contains(data))
      file.map->release(static_cast<uint64_t>(data - file.bytes.data()), bytes);
}

std::string FolderSource::hash() const {
  std::vector<llvm::ArrayRef<uint8_t>> pieces;
  for (const FolderFile &file : files)
    pieces.push_back(file.bytes);
  return hashPieces(pieces,
                    [&](llvm::ArrayRef<uint8_t> read) { release(read.data(), read.size()); });
}
