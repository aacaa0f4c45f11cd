// What an architecture's function says about keys.

#include "compiler/import/FolderModel.h"
#include "compiler/support/Error.h"
#include "compiler/support/Numbers.h"

#include <cmath>
#include <cstring>

using namespace izhc;

const FolderSource &FolderKeys::source() const { return *model.source; }

llvm::StringRef FolderKeys::fileName() const { return model.fileName(); }

void FolderKeys::fail(llvm::Error error) const {
  if (model.problem)
    return llvm::consumeError(std::move(error));
  model.problem.emplace(std::move(error));
}

void FolderKeys::refuse(llvm::StringRef path, const llvm::Twine &text) const {
  fail(makeError("{0}/config.json: {1} {2}", fileName(), quote(path), text.str()));
}

//===----------------------------------------------------------------------===//
// Reading config.json
//===----------------------------------------------------------------------===//

FolderKeys::Place FolderKeys::locate(llvm::StringRef paths) const {
  llvm::SmallVector<llvm::StringRef, 4> list;
  paths.split(list, '|');
  for (llvm::StringRef path : list) {
    llvm::Expected<const Json *> found = model.source->setting(path);
    if (!found)
      fail(found.takeError());
    else if (*found)
      return {path, *found};
  }
  for (llvm::StringRef path : list)
    if (auto found = model.assumed.find(path); found != model.assumed.end())
      return {path, &found->second};
  return {list.front(), nullptr};
}

const Json *FolderKeys::find(llvm::StringRef paths) const { return locate(paths).value; }

bool FolderKeys::names(llvm::StringRef key) const {
  const Json &config = model.source->config();
  const Json *text = config.find("text_config");
  return config.find(key) || (text && text->find(key));
}

template <typename T, typename Convert>
std::optional<T> FolderKeys::one(llvm::StringRef paths, const llvm::Twine &expected,
                                 const Convert &convert) const {
  auto [path, value] = locate(paths);
  if (!value)
    return std::nullopt;
  std::optional<T> converted = convert(*value);
  if (!converted)
    fail(model.source->unexpected(path, *value, expected));
  return converted;
}

template <typename T, typename Convert>
std::vector<T> FolderKeys::list(llvm::StringRef paths, const llvm::Twine &expected,
                                const Convert &convert) const {
  auto [path, value] = locate(paths);
  std::vector<T> converted;
  if (!value)
    return converted;
  if (!value->isArray())
    fail(model.source->unexpected(path, *value, "a list"));
  for (const Json &item : value->items()) {
    std::optional<T> one = convert(item);
    if (one) {
      converted.push_back(*one);
      continue;
    }
    fail(model.source->unexpected(llvm::formatv("{0}[{1}]", path, converted.size()).str(), item,
                                  expected));
    return {};
  }
  return converted;
}

// Integers only: what is counted comes in whole ones.
static std::optional<int64_t> countOf(const Json &value, int64_t low) {
  std::optional<int64_t> integer = value.asInt();
  return integer && *integer >= low && *integer <= FolderKeys::kMostCounted ? integer
                                                                            : std::nullopt;
}

static std::string countText(int64_t low) {
  return llvm::formatv("an integer from {0} to {1}", low, FolderKeys::kMostCounted).str();
}

std::optional<double> FolderKeys::number(llvm::StringRef paths, double low, double high) const {
  std::string expected = low <= -1e300 ? "a number"
                         : high >= 1e300
                             ? "a number of at least " + shortText(low)
                             : "a number from " + shortText(low) + " to " + shortText(high);
  return one<double>(paths, expected, [&](const Json &value) {
    std::optional<double> number = value.asNumber();
    return number && *number >= low && *number <= high ? number : std::nullopt;
  });
}

std::optional<int64_t> FolderKeys::count(llvm::StringRef paths, int64_t low) const {
  return one<int64_t>(paths, countText(low),
                      [&](const Json &value) { return countOf(value, low); });
}

std::optional<bool> FolderKeys::flag(llvm::StringRef paths) const {
  return one<bool>(paths, "true or false", [](const Json &value) { return value.asBool(); });
}

std::optional<llvm::StringRef> FolderKeys::text(llvm::StringRef paths) const {
  return one<llvm::StringRef>(paths, "a string",
                              [](const Json &value) { return value.asString(); });
}

std::vector<float> FolderKeys::numbers(llvm::StringRef paths) const {
  return list<float>(paths, "a number", [](const Json &value) {
    std::optional<double> number = value.asNumber();
    return number && std::isfinite(float(*number)) ? std::optional<float>(float(*number))
                                                   : std::nullopt;
  });
}

std::vector<int64_t> FolderKeys::counts(llvm::StringRef paths) const {
  return list<int64_t>(paths, countText(0), [](const Json &value) { return countOf(value, 0); });
}

std::vector<bool> FolderKeys::equals(llvm::StringRef path, llvm::StringRef wanted,
                                     llvm::StringRef other) const {
  auto kind = [&](const Json &value) -> std::optional<bool> {
    std::optional<llvm::StringRef> text = value.asString();
    return text == wanted || text == other ? std::optional<bool>(text == wanted) : std::nullopt;
  };
  std::string expected = quote(wanted) + (other.empty() ? "" : " or " + quote(other));
  return list<bool>(path, expected + ", as this architecture has it", kind);
}

void FolderKeys::assume(llvm::StringRef path, Json value) {
  model.assumed.insert_or_assign(path, std::move(value));
}

//===----------------------------------------------------------------------===//
// Writing the architecture's keys
//===----------------------------------------------------------------------===//

void FolderKeys::set(llvm::StringRef ours, Json value, llvm::StringRef theirs) {
  std::string key = (model.map.architecture + "." + ours).str();
  auto [place, isNew] = model.keys.try_emplace(key);
  if (isNew)
    model.keyOrder.push_back(key);
  place->second = std::move(value);
  model.origins[key] = theirs.str();
}

void FolderKeys::set(llvm::StringRef ours, const std::vector<bool> &values,
                     llvm::StringRef theirs) {
  std::vector<Json> items;
  for (bool value : values)
    items.push_back(Json::of(value));
  set(ours, Json::of(std::move(items)), theirs);
}

void FolderKeys::set(llvm::StringRef ours, const std::vector<int64_t> &values,
                     llvm::StringRef theirs) {
  std::vector<Json> items;
  for (int64_t value : values)
    items.push_back(Json::of(value));
  set(ours, Json::of(std::move(items)), theirs);
}

// Without a value, messages about the key's absence still name the path.
void FolderKeys::copy(llvm::StringRef ours, llvm::StringRef theirs, std::optional<Json> value) {
  llvm::StringRef path = locate(theirs).path;
  if (value)
    return set(ours, std::move(*value), path);
  model.origins.try_emplace((model.map.architecture + "." + ours).str(), path.str());
}

template <typename T> static std::optional<Json> jsonOf(std::optional<T> value) {
  return value ? std::optional<Json>(Json::of(*value)) : std::nullopt;
}

void FolderKeys::copyNumber(llvm::StringRef ours, llvm::StringRef theirs) {
  copy(ours, theirs, jsonOf(number(theirs)));
}

void FolderKeys::copyCount(llvm::StringRef ours, llvm::StringRef theirs) {
  copy(ours, theirs, jsonOf(count(theirs)));
}

void FolderKeys::copyFlag(llvm::StringRef ours, llvm::StringRef theirs) {
  copy(ours, theirs, jsonOf(flag(theirs)));
}

void FolderKeys::vector(llvm::StringRef tensor, llvm::ArrayRef<float> values) {
  if (values.empty())
    return;
  model.values.push_back(std::make_unique<std::vector<float>>(values.begin(), values.end()));
  TensorInfo info;
  info.shape = {int64_t(values.size())};
  info.format = findFormat("f32");
  info.ggufType = info.format->ggufType;
  info.data = reinterpret_cast<const uint8_t *>(model.values.back()->data());
  model.addTensor(tensor, std::move(info));
}

void FolderKeys::expect(llvm::StringRef path, llvm::StringRef given, llvm::StringRef wanted,
                        bool present) {
  llvm::StringRef key = locate(path).path;
  std::string reason =
      names(key) ? quote(key) + " in config.json has it" : "config.json has no " + quote(key);
  model.expectations.push_back({std::move(reason), given.str(), wanted.str(), present});
}
