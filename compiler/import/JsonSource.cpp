// Getters over JSON values, and how such values are shown.

#include "compiler/import/JsonSource.h"

#include "compiler/support/Error.h"
#include "compiler/support/Numbers.h"

#include <cmath>

using namespace izhc;

llvm::Error JsonSource::mismatch(llvm::StringRef key, const char *expected) const {
  const Json *found = value(key);
  return makeError("{0} is {1}, but {2} is expected", keyPlace(key),
                   found ? jsonText(*found) : "absent", expected);
}

bool JsonSource::isArray(llvm::StringRef key) const {
  const Json *found = present(key);
  return found && found->isArray();
}

template <typename T, typename Convert>
llvm::Expected<std::optional<T>> JsonSource::one(llvm::StringRef key, const char *expected,
                                                 const Convert &convert) const {
  const Json *found = present(key);
  if (!found)
    return std::nullopt;
  std::optional<T> converted = convert(*found);
  if (!converted)
    return mismatch(key, expected);
  return converted;
}

template <typename T, typename Convert>
llvm::Expected<std::optional<std::vector<T>>>
JsonSource::list(llvm::StringRef key, const char *expected, const Convert &convert) const {
  const Json *found = present(key);
  if (!found)
    return std::nullopt;
  if (!found->isArray())
    return mismatch(key, expected);
  std::vector<T> values;
  values.reserve(found->items().size());
  for (const Json &item : found->items()) {
    std::optional<T> converted = convert(item);
    if (!converted)
      return mismatch(key, expected);
    values.push_back(*converted);
  }
  return values;
}

static std::optional<double> finiteNumber(const Json &json) {
  std::optional<double> number = json.asNumber();
  return number && std::isfinite(*number) ? number : std::nullopt;
}

llvm::Expected<std::optional<uint64_t>> JsonSource::getUInt(llvm::StringRef key) const {
  return one<uint64_t>(key, "an integer of at least 0", [](const Json &j) { return j.asUInt(); });
}

llvm::Expected<std::optional<int64_t>> JsonSource::getInt(llvm::StringRef key) const {
  return one<int64_t>(key, "an integer", [](const Json &j) { return j.asInt(); });
}

llvm::Expected<std::optional<double>> JsonSource::getFloat(llvm::StringRef key) const {
  return one<double>(key, "a number", finiteNumber);
}

llvm::Expected<std::optional<bool>> JsonSource::getBool(llvm::StringRef key) const {
  return one<bool>(key, "true or false", [](const Json &j) { return j.asBool(); });
}

llvm::Expected<std::optional<llvm::StringRef>> JsonSource::getString(llvm::StringRef key) const {
  return one<llvm::StringRef>(key, "a string", [](const Json &j) { return j.asString(); });
}

llvm::Expected<std::optional<std::vector<llvm::StringRef>>>
JsonSource::getStringArray(llvm::StringRef key) const {
  return list<llvm::StringRef>(key, "a list of strings",
                               [](const Json &j) { return j.asString(); });
}

llvm::Expected<std::optional<std::vector<float>>>
JsonSource::getFloatArray(llvm::StringRef key) const {
  return list<float>(key, "a list of numbers", [](const Json &j) -> std::optional<float> {
    std::optional<double> number = finiteNumber(j);
    return number ? std::optional<float>(float(*number)) : std::nullopt;
  });
}

llvm::Expected<std::optional<std::vector<int64_t>>>
JsonSource::getIntArray(llvm::StringRef key) const {
  return list<int64_t>(key, "a list of integers", [](const Json &j) -> std::optional<int64_t> {
    if (std::optional<bool> flag = j.asBool())
      return *flag;
    return j.asInt();
  });
}

std::string izhc::jsonKindName(const Json &value) {
  static const char *const names[] = {"null", "bool", "int", "float", "string", "array", "object"};
  return names[static_cast<size_t>(value.kind())];
}

std::string izhc::jsonText(const Json &value) {
  constexpr size_t kShownBytes = 120, kShownElements = 8;
  if (std::optional<llvm::StringRef> text = value.asString())
    return quote(*text, kShownBytes);
  if (std::optional<bool> flag = value.asBool())
    return *flag ? "true" : "false";
  if (std::optional<int64_t> integer = value.asInt())
    return std::to_string(*integer);
  if (std::optional<double> number = value.asNumber())
    return shortText(*number);
  if (value.isNull())
    return "null";
  if (value.isObject())
    return llvm::formatv("{{...} ({0})", value.items().size()).str();
  std::string list = "[";
  for (size_t i = 0; i < value.items().size() && i < kShownElements; ++i)
    list += (i ? ", " : "") + (value.items()[i].isArray() ? "[...]" : jsonText(value.items()[i]));
  if (value.items().size() > kShownElements)
    list += llvm::formatv(", ... ({0})", value.items().size()).str();
  return list + "]";
}
