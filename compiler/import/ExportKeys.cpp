// The number of the type (of an array: of arrays, of its elements, and how many
// there are), then the value; lengths have 64 bits.

#include "compiler/import/ExportKeys.h"
#include <bit>

using namespace izhc;

namespace {

enum Type : uint32_t {
  Uint8 = 0,
  Uint32 = 4,
  Int32 = 5,
  Float32 = 6,
  Bool = 7,
  String = 8,
  Array = 9,
};

class Writer {
public:
  explicit Writer(llvm::StringRef name) : key{name, {}} {}

  template <typename T> Writer &put(T value) {
    for (size_t i = 0; i < sizeof(T); ++i)
      key.value.push_back(static_cast<uint8_t>(uint64_t(value) >> 8 * i));
    return *this;
  }
  Writer &put(llvm::StringRef text) {
    put(uint64_t(text.size()));
    key.value.insert(key.value.end(), text.begin(), text.end());
    return *this;
  }
  Writer &put(float value) { return put(std::bit_cast<uint32_t>(value)); }

  template <typename T> ExportKey array(Type type, llvm::ArrayRef<T> values) {
    put(uint32_t(Array)).put(uint32_t(type)).put(uint64_t(values.size()));
    for (const T &value : values)
      put(value);
    return std::move(key);
  }

  ExportKey key;
};

} // namespace

ExportKey izhc::exportNumber(llvm::StringRef name, uint32_t value) {
  return std::move(Writer(name).put(uint32_t(Uint32)).put(value).key);
}

ExportKey izhc::exportFloat(llvm::StringRef name, float value) {
  return std::move(Writer(name).put(uint32_t(Float32)).put(value).key);
}

ExportKey izhc::exportFlag(llvm::StringRef name, bool value) {
  return std::move(Writer(name).put(uint32_t(Bool)).put(uint8_t(value)).key);
}

ExportKey izhc::exportText(llvm::StringRef name, llvm::StringRef value) {
  return std::move(Writer(name).put(uint32_t(String)).put(value).key);
}

ExportKey izhc::exportTexts(llvm::StringRef name, llvm::ArrayRef<std::string> values) {
  std::vector<llvm::StringRef> texts(values.begin(), values.end());
  return Writer(name).array(String, llvm::ArrayRef(texts));
}

ExportKey izhc::exportNumbers(llvm::StringRef name, llvm::ArrayRef<int32_t> values) {
  return Writer(name).array(Int32, values);
}

ExportKey izhc::exportFloats(llvm::StringRef name, llvm::ArrayRef<float> values) {
  return Writer(name).array(Float32, values);
}

ExportKey izhc::exportBytes(llvm::StringRef name, llvm::ArrayRef<uint8_t> values) {
  return Writer(name).array(Uint8, values);
}

ExportKey izhc::exportFlags(llvm::StringRef name, llvm::ArrayRef<bool> values) {
  return Writer(name).array(Bool, values);
}
