// A model folder seen through an architecture's FolderMap: a ModelSource with
// the keys and tensors that the architecture reads from GGUF files. Tensors
// that no rule names keep their names, so that they are missed, not lost.

#pragma once

#include "compiler/import/FolderMap.h"

namespace izhc {

class FolderModel final : public JsonSource {
public:
  static llvm::Expected<std::unique_ptr<FolderModel>> create(std::unique_ptr<FolderSource> source,
                                                             const FolderMap &map);

  std::optional<llvm::ArrayRef<uint8_t>> companion(llvm::StringRef name) const override {
    return source->companion(name);
  }
  llvm::StringRef fileName() const override { return source->fileName(); }
  std::string kindName() const override { return source->kindName(); }
  uint64_t fileBytes() const override { return source->fileBytes(); }
  std::string keyPlace(llvm::StringRef key) const override;
  std::string tensorName(llvm::StringRef name) const override;
  std::vector<MetaInfo> metadata() const override;
  std::vector<ExportKey> exportKeys() const override;
  llvm::ArrayRef<TensorInfo> tensors() const override { return allTensors; }
  const TensorInfo *findTensor(llvm::StringRef name) const override;
  void release(const uint8_t *data, uint64_t bytes) const override { source->release(data, bytes); }
  std::string hash() const override { return source->hash(); }

protected:
  const Json *value(llvm::StringRef key) const override {
    auto found = keys.find(key);
    return found == keys.end() ? nullptr : &found->second;
  }

private:
  friend class FolderKeys;
  FolderModel(std::unique_ptr<FolderSource> source, const FolderMap &map)
      : source(std::move(source)), map(map) {}
  // See FolderKeys::expect.
  struct Expectation {
    // Why, as a part of a sentence.
    std::string reason, given, wanted;
    bool present;
  };
  // The tensors of a folder that become one of ours, by number.
  struct Group {
    const TensorRule *rule;
    std::vector<std::pair<uint64_t, const TensorInfo *>> parts;
  };
  // `tied`: whether the embedding's matrix is the output's too, if that is told.
  llvm::Error matchTensors(std::optional<bool> tied);
  bool isEmbedding(const TensorInfo &output) const;
  bool leftOut(llvm::StringRef name) const;
  bool isPastLayers(llvm::StringRef name) const;
  bool match(llvm::ArrayRef<TensorRule> rules, llvm::StringRef name, const TensorInfo &tensor);
  llvm::Error checkExpectations() const;
  llvm::Error addGroup(llvm::StringRef name, Group &group);
  llvm::Error addChanged(llvm::StringRef name, const TensorInfo &tensor, const TensorRule &rule);
  // The indices that `order` gives; empty: all in order.
  llvm::Error orderOf(const TensorInfo &tensor, Order order, int64_t count,
                      std::vector<int64_t> &indices) const;
  llvm::Error addRows(llvm::StringRef name, const Group &group);
  void addTensor(llvm::StringRef name, TensorInfo info);
  llvm::StringRef keep(std::string text);

  std::unique_ptr<FolderSource> source;
  const FolderMap &map;
  llvm::StringMap<Json> keys;
  llvm::StringMap<Json> assumed;
  std::vector<std::string> keyOrder;
  // Where config.json has, or would have, what a key says; "" for what is made
  // of several values.
  llvm::StringMap<std::string> origins;
  // In the order in which their first part was met.
  std::vector<std::pair<std::string, Group>> groups;
  llvm::StringMap<size_t> groupOf;
  // Those that are computed, and those that predict further tokens.
  int64_t layers = INT64_MAX, guesses = 0;
  std::vector<Expectation> expectations;
  std::vector<std::unique_ptr<std::string>> texts;
  std::vector<std::unique_ptr<std::vector<float>>> values;
  std::vector<TensorInfo> allTensors;
  llvm::StringMap<size_t> tensorNames;
  std::optional<llvm::Error> problem;
};

} // namespace izhc
