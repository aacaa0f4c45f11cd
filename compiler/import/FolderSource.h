// A model folder as its publisher wrote it: config.json, safetensors files (one,
// or several with an index) and the tokenizer's files beside them. Keys are
// paths into config.json, tensors have the names of the files. What they mean
// to an architecture is FolderModel.h's matter.

#pragma once

#include "compiler/import/CombineStored.h"
#include "compiler/import/JsonSource.h"
#include "compiler/support/MappedFile.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

namespace izhc {

// One file of a folder; `map` is null for bytes that someone else keeps.
struct FolderFile {
  std::string name;
  std::unique_ptr<MappedFile> map;
  llvm::ArrayRef<uint8_t> bytes;
};

class FolderSource final : public JsonSource {
public:
  // Opens the folder `path`.
  static llvm::Expected<std::unique_ptr<FolderSource>> open(llvm::StringRef path);
  // A folder that consists of `files`; `name` is for messages. For tests.
  static llvm::Expected<std::unique_ptr<FolderSource>> open(llvm::StringRef name,
                                                            std::vector<FolderFile> files);

  const FolderSource *asFolder() const override { return this; }
  std::optional<llvm::ArrayRef<uint8_t>> companion(llvm::StringRef name) const override;
  llvm::StringRef fileName() const override { return name; }
  std::string kindName() const override;
  std::string keyPlace(llvm::StringRef key) const override;
  uint64_t fileBytes() const override;
  std::vector<MetaInfo> metadata() const override;
  llvm::ArrayRef<TensorInfo> tensors() const override { return allTensors; }
  const TensorInfo *findTensor(llvm::StringRef name) const override;
  void release(const uint8_t *data, uint64_t bytes) const override;
  std::string hash() const override;

  const Json &config() const { return configuration; }
  // What config.json says at `path` ("a.b.c"; in `text_config` first, where
  // there is one); nullptr if it is absent or null. What a path goes through
  // must be objects.
  llvm::Expected<const Json *> setting(llvm::StringRef path) const;
  // A number of things: an integer from 0 to 65536; 0 if it is absent.
  llvm::Expected<int64_t> count(llvm::StringRef path) const;
  // That `path` in config.json is `found`, not what is expected.
  llvm::Error unexpected(llvm::StringRef path, const Json &found,
                         const llvm::Twine &expected) const;

protected:
  const Json *value(llvm::StringRef key) const override { return configuration.findPath(key); }

private:
  explicit FolderSource(llvm::StringRef name) : name(name.str()) {}
  llvm::Error read();
  llvm::Error readWeights();
  llvm::Error checkIndex();
  llvm::Expected<ScaleBlock> scaleBlock() const;
  llvm::Error addTensors(llvm::ArrayRef<StoredTensor> stored);
  void addMeta(const std::string &prefix, const Json &object);
  const FolderFile *find(llvm::StringRef fileName) const;

  std::string name;
  // In the order of their names.
  std::vector<FolderFile> files;
  Json configuration;
  std::vector<std::pair<std::string, const Json *>> meta;
  // The file of each tensor that is stored.
  llvm::StringMap<std::string> holders;
  // What StringRefs of tensors point to.
  std::vector<std::unique_ptr<std::string>> texts;
  std::vector<TensorInfo> allTensors;
  llvm::DenseMap<llvm::StringRef, size_t> tensorNames;
};

} // namespace izhc
