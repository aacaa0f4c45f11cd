// What an architecture's function says about keys.

#include "compiler/import/FolderModel.h"
#include "compiler/support/Error.h"

#include <cstring>

using namespace izhc;

const FolderSource &FolderKeys::source() const { return *model.source; }

llvm::StringRef FolderKeys::fileName() const { return model.fileName(); }

const Json *FolderKeys::find(llvm::StringRef paths) const {
  const Json &config = model.source->config();
  const Json *text = config.find("text_config");
  llvm::SmallVector<llvm::StringRef, 4> list;
  paths.split(list, '|');
  for (llvm::StringRef path : list)
    for (const Json *place : {text, &config})
      if (const Json *found = place ? place->findPath(path) : nullptr)
        if (!found->isNull())
          return found;
  for (llvm::StringRef path : list)
    if (auto found = model.assumed.find(path); found != model.assumed.end())
      return &found->second;
  return nullptr;
}

void FolderKeys::assume(llvm::StringRef path, Json value) {
  model.assumed.insert_or_assign(path, std::move(value));
}

std::optional<double> FolderKeys::number(llvm::StringRef paths) const {
  const Json *found = find(paths);
  return found ? found->asNumber() : std::nullopt;
}

std::optional<int64_t> FolderKeys::integer(llvm::StringRef paths) const {
  const Json *found = find(paths);
  return found ? found->asInt() : std::nullopt;
}

std::optional<bool> FolderKeys::flag(llvm::StringRef path) const {
  const Json *found = find(path);
  return found ? found->asBool() : std::nullopt;
}

std::optional<llvm::StringRef> FolderKeys::text(llvm::StringRef path) const {
  const Json *found = find(path);
  return found ? found->asString() : std::nullopt;
}

std::vector<bool> FolderKeys::equals(llvm::StringRef path, llvm::StringRef wanted) const {
  std::vector<bool> result;
  if (const Json *found = find(path))
    for (const Json &item : found->items())
      result.push_back(item.asString() == wanted);
  return result;
}

void FolderKeys::set(llvm::StringRef ours, Json value) {
  std::string key = (model.map.architecture + "." + ours).str();
  auto [place, isNew] = model.keys.try_emplace(key);
  if (isNew)
    model.keyOrder.push_back(key);
  place->second = std::move(value);
}

void FolderKeys::set(llvm::StringRef ours, const std::vector<bool> &values) {
  std::vector<Json> items;
  for (bool value : values)
    items.push_back(Json::of(value));
  set(ours, Json::of(std::move(items)));
}

void FolderKeys::set(llvm::StringRef ours, const std::vector<int64_t> &values) {
  std::vector<Json> items;
  for (int64_t value : values)
    items.push_back(Json::of(value));
  set(ours, Json::of(std::move(items)));
}

void FolderKeys::copy(llvm::StringRef ours, llvm::StringRef theirs) {
  const Json *found = find(theirs);
  if (!found)
    return;
  if (auto flag = found->asBool())
    return set(ours, Json::of(*flag));
  if (auto integer = found->asInt())
    return set(ours, Json::of(*integer));
  if (auto number = found->asNumber())
    return set(ours, Json::of(*number));
  if (auto text = found->asString())
    return set(ours, Json::of(*text));
  fail(makeError("{0}/config.json: {1} is {2}, expected one value", fileName(), quote(theirs),
                 jsonText(*found)));
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

void FolderKeys::ownForm() { model.hasOwnForm = true; }

void FolderKeys::fail(llvm::Error error) {
  if (model.problem)
    return llvm::consumeError(std::move(error));
  model.problem.emplace(std::move(error));
}
