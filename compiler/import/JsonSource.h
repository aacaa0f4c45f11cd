// A model whose metadata are JSON values: the getters of ModelSource over them.

#pragma once

#include "compiler/import/ModelSource.h"
#include "compiler/support/Json.h"

namespace izhc {

class JsonSource : public ModelSource {
public:
  bool hasKey(llvm::StringRef key) const override { return present(key) != nullptr; }
  bool isArray(llvm::StringRef key) const override;
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

protected:
  // nullptr if there is none.
  virtual const Json *value(llvm::StringRef key) const = 0;

private:
  // null counts as absent.
  const Json *present(llvm::StringRef key) const {
    const Json *found = value(key);
    return found && !found->isNull() ? found : nullptr;
  }
  llvm::Error mismatch(llvm::StringRef key, const char *expected) const;
  template <typename T, typename Convert>
  llvm::Expected<std::optional<T>> one(llvm::StringRef key, const char *expected,
                                       const Convert &convert) const;
  template <typename T, typename Convert>
  llvm::Expected<std::optional<std::vector<T>>> list(llvm::StringRef key, const char *expected,
                                                     const Convert &convert) const;
};

// A value as text for people, cut where it is long.
std::string jsonText(const Json &value);
// "string", "array" ...
std::string jsonKindName(const Json &value);

} // namespace izhc
