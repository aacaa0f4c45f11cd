// A ModelSource of metadata that a test writes down.

#pragma once

#include "compiler/import/ModelSource.h"
#include "compiler/support/Error.h"
#include <map>
#include <variant>

namespace izhc::test {

class FakeSource : public ModelSource {
public:
  using Value = std::variant<int64_t, bool, std::string, std::vector<std::string>,
                             std::vector<float>, std::vector<int64_t>>;
  std::map<std::string, Value> values;

  llvm::StringRef fileName() const override { return "fake.gguf"; }
  std::string kindName() const override { return "fake"; }
  uint64_t fileBytes() const override { return 0; }
  std::vector<MetaInfo> metadata() const override { return {}; }
  bool hasKey(llvm::StringRef key) const override { return values.count(key.str()) != 0; }

  llvm::Expected<std::optional<uint64_t>> getUInt(llvm::StringRef key) const override {
    return convert<uint64_t, int64_t>(key);
  }
  llvm::Expected<std::optional<int64_t>> getInt(llvm::StringRef key) const override {
    return convert<int64_t, int64_t>(key);
  }
  llvm::Expected<std::optional<double>> getFloat(llvm::StringRef key) const override {
    return convert<double, int64_t>(key);
  }
  llvm::Expected<std::optional<bool>> getBool(llvm::StringRef key) const override {
    return convert<bool, bool>(key);
  }
  llvm::Expected<std::optional<llvm::StringRef>> getString(llvm::StringRef key) const override {
    return convert<llvm::StringRef, std::string>(key);
  }
  llvm::Expected<std::optional<std::vector<llvm::StringRef>>>
  getStringArray(llvm::StringRef key) const override {
    auto found = find<std::vector<std::string>>(key);
    if (!found)
      return found.takeError();
    if (!*found)
      return std::nullopt;
    return std::vector<llvm::StringRef>((*found)->begin(), (*found)->end());
  }
  llvm::Expected<std::optional<std::vector<float>>>
  getFloatArray(llvm::StringRef key) const override {
    return convert<std::vector<float>, std::vector<float>>(key);
  }
  llvm::Expected<std::optional<std::vector<int64_t>>>
  getIntArray(llvm::StringRef key) const override {
    return convert<std::vector<int64_t>, std::vector<int64_t>>(key);
  }
  bool isArray(llvm::StringRef) const override { return false; }
  llvm::ArrayRef<TensorInfo> tensors() const override { return {}; }
  const TensorInfo *findTensor(llvm::StringRef) const override { return nullptr; }
  void release(const uint8_t *, uint64_t) const override {}
  std::string hash() const override { return ""; }

private:
  // nullptr: there is no such key.
  template <typename T> llvm::Expected<const T *> find(llvm::StringRef key) const {
    auto it = values.find(key.str());
    if (it == values.end())
      return nullptr;
    if (const T *value = std::get_if<T>(&it->second))
      return value;
    return makeError("fake.gguf: {0} has another type", key);
  }
  template <typename To, typename T>
  llvm::Expected<std::optional<To>> convert(llvm::StringRef key) const {
    auto found = find<T>(key);
    if (!found)
      return found.takeError();
    if (!*found)
      return std::nullopt;
    return To(**found);
  }
};

// Byte-level: the 256 characters of bytes in byte order, then `more`.
FakeSource byteSource(const std::vector<std::string> &more = {},
                      const std::vector<std::string> &merges = {});
// By score: <unk>, <s>, </s>, then `more`, all with score -1.
FakeSource scoreSource(const std::vector<std::string> &more = {});

} // namespace izhc::test
