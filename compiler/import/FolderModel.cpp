// Applies a FolderMap: finds the rule of each tensor, gathers what is stacked
// and makes readers for what doesn't lie in the files as it is wanted.

#include "compiler/import/FolderModel.h"

#include "compiler/import/StackedRows.h"
#include "compiler/support/Error.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Path.h"

#include <cassert>
#include <cmath>
#include <cstring>

using namespace izhc;

namespace {

// Tensors that become float32 in memory; norms and the like.
constexpr int64_t kMostChanged = 1 << 24;

// Parts of a model that reads more than text. They have no place in a language
// model, whose own tensors are below the other prefixes.
constexpr llvm::StringLiteral kOtherTowers[] = {
    "vision_tower.",
    "model.vision_tower.",
    "visual.",
    "model.visual.",
    "vision_model.",
    "model.vision_model.",
    "audio_tower.",
    "model.audio_tower.",
    "multi_modal_projector.",
    "model.multi_modal_projector.",
    "model.embed_vision.",
    "model.embed_audio.",
    "model.vision_embedder.",
    "patch_merger.",
    "vision_encoder.",
    "vision_language_adapter.",
};

constexpr llvm::StringLiteral kOutput("lm_head.weight"), kEmbedding("model.embed_tokens.weight");
// How many bytes of two matrices are compared at once.
constexpr int64_t kCompared = 1 << 20;

// Takes the digits at the front of `text`; false if there are none.
bool takeNumber(llvm::StringRef &text, llvm::StringRef &digits) {
  digits = text.take_while([](char c) { return c >= '0' && c <= '9'; });
  text = text.drop_front(digits.size());
  // Longer ones number nothing.
  return !digits.empty() && digits.size() <= 9;
}

struct Matched {
  llvm::SmallVector<llvm::StringRef, 2> numbers;
  std::optional<uint64_t> expert;
};

std::optional<Matched> matchName(llvm::StringRef pattern, llvm::StringRef name) {
  Matched found;
  while (!pattern.empty()) {
    if (pattern == "**")
      return found;
    char c = pattern.front();
    pattern = pattern.drop_front();
    llvm::StringRef digits;
    if (c == '*' || c == '#') {
      if (!takeNumber(name, digits))
        return std::nullopt;
      uint64_t number = 0;
      if (c == '*')
        found.numbers.push_back(digits);
      else if (!digits.getAsInteger(10, number))
        found.expert = number;
      continue;
    }
    if (name.empty() || name.front() != c)
      return std::nullopt;
    name = name.drop_front();
  }
  return name.empty() ? std::optional<Matched>(std::move(found)) : std::nullopt;
}

std::string fillIn(llvm::StringRef ours, llvm::ArrayRef<llvm::StringRef> numbers) {
  std::string name;
  for (char c : ours) {
    if (c == '*' && !numbers.empty()) {
      name += numbers.front();
      numbers = numbers.drop_front();
    } else {
      name += c;
    }
  }
  return name;
}

// The name that a model of text alone gives to the same tensor.
std::string textName(llvm::StringRef name) {
  if (name.consume_front("model.language_model."))
    return ("model." + name).str();
  name.consume_front("language_model.");
  return name.str();
}

} // namespace

llvm::Expected<std::unique_ptr<FolderModel>>
FolderModel::create(std::unique_ptr<FolderSource> source, const FolderMap &map) {
  std::unique_ptr<FolderModel> model(new FolderModel(std::move(source), map));
  FolderKeys keys(*model);
  model->keys["general.architecture"] = Json::of(map.architecture);
  model->keys["general.name"] = Json::of(llvm::sys::path::filename(model->fileName().rtrim('/')));
  model->keyOrder = {"general.architecture", "general.name"};
  map.keys(keys);
  model->layers = keys.count("num_hidden_layers").value_or(INT64_MAX);
  model->guesses = keys.count("num_nextn_predict_layers").value_or(0);
  std::optional<bool> tied = keys.flag("tie_word_embeddings");
  if (model->problem) {
    llvm::Error error = std::move(*model->problem);
    model->problem.reset();
    return std::move(error);
  }
  if (llvm::Error error = model->matchTensors(tied))
    return std::move(error);
  if (llvm::Error error = model->checkExpectations())
    return std::move(error);
  return std::move(model);
}

std::string FolderModel::keyPlace(llvm::StringRef key) const {
  auto found = origins.find(key);
  if (found == origins.end())
    return ModelSource::keyPlace(key);
  if (found->second.empty())
    return llvm::formatv("{0}/config.json: {1}, which follows from it,", fileName(), quote(key))
        .str();
  return llvm::formatv("{0}/config.json: {1}", fileName(), quote(found->second)).str();
}

// Of several names the first rule's; of stacked tensors that of all parts.
std::string FolderModel::tensorName(llvm::StringRef name) const {
  for (llvm::ArrayRef<TensorRule> rules :
       {map.tensors, map.shared ? map.shared() : llvm::ArrayRef<TensorRule>()})
    for (const TensorRule &rule : rules)
      if (auto found = rule.ours.empty() ? std::nullopt : matchName(rule.ours, name))
        return fillIn(rule.theirs, found->numbers);
  return name.str();
}

llvm::Error FolderModel::checkExpectations() const {
  for (const Expectation &one : expectations)
    for (const TensorInfo &tensor : allTensors) {
      std::optional<Matched> found = matchName(one.given, tensor.name);
      if (!found)
        continue;
      std::string wanted = fillIn(one.wanted, found->numbers);
      if ((findTensor(wanted) != nullptr) != one.present)
        return makeError("{0}: {1} is {2}, but as {3}, it must {4}be there; config.json and the "
                         "weights don't belong together",
                         fileName(), quote(tensorName(wanted)), one.present ? "missing" : "there",
                         one.reason, one.present ? "" : "not ");
    }
  return llvm::Error::success();
}

llvm::StringRef FolderModel::keep(std::string text) {
  texts.push_back(std::make_unique<std::string>(std::move(text)));
  return *texts.back();
}

std::vector<MetaInfo> FolderModel::metadata() const {
  std::vector<MetaInfo> list;
  for (const std::string &key : keyOrder)
    if (const Json *found = value(key))
      list.push_back({key, jsonKindName(*found), jsonText(*found)});
  return list;
}

const TensorInfo *FolderModel::findTensor(llvm::StringRef name) const {
  auto found = tensorNames.find(name);
  return found == tensorNames.end() ? nullptr : &allTensors[found->second];
}

// The number of a layer's tensor, or -1.
static int64_t layerOf(llvm::StringRef name) {
  llvm::StringRef digits;
  int64_t layer;
  return name.consume_front("model.layers.") && takeNumber(name, digits) &&
                 !digits.getAsInteger(10, layer)
             ? layer
             : -1;
}

// Predicting further tokens is not done here.
bool FolderModel::leftOut(llvm::StringRef name) const {
  for (llvm::StringRef prefix : kOtherTowers)
    if (name.starts_with(prefix))
      return true;
  return layerOf(name) >= layers && !isPastLayers(name);
}

// A model of no layers is refused for its count.
bool FolderModel::isPastLayers(llvm::StringRef name) const {
  int64_t layer = layerOf(name);
  bool any = layers > 0 || guesses > 0;
  return any && layer >= layers && layer - layers >= guesses;
}

// Whether the output's matrix is a copy of the embedding's, byte for byte.
bool FolderModel::isEmbedding(const TensorInfo &output) const {
  const auto *found = llvm::find_if(source->tensors(), [](const TensorInfo &tensor) {
    return textName(tensor.name) == kEmbedding;
  });
  if (found == source->tensors().end() || !output.format || found->format != output.format ||
      found->shape != output.shape)
    return false;
  int64_t rowBytes = std::max<int64_t>(int64_t(output.rowBytes()), 1);
  int64_t step = std::max<int64_t>(kCompared / rowBytes, 1), rows = output.rows();
  std::vector<uint8_t> pieces[2];
  for (int64_t first = 0; first < rows; first += step) {
    int64_t count = std::min(step, rows - first);
    for (auto [piece, tensor] : {std::pair(&pieces[0], found), {&pieces[1], &output}}) {
      piece->resize(size_t(count * rowBytes));
      tensor->readRows(first, count, piece->data());
      if (tensor->data)
        source->release(tensor->data + first * rowBytes, piece->size());
    }
    if (pieces[0] != pieces[1])
      return false;
  }
  return true;
}

bool FolderModel::match(llvm::ArrayRef<TensorRule> rules, llvm::StringRef name,
                        const TensorInfo &tensor) {
  bool any = false;
  for (const TensorRule &rule : rules) {
    std::optional<Matched> found = matchName(rule.theirs, name);
    if (!found)
      continue;
    any = true;
    if (rule.ours.empty())
      continue;
    std::string ours = fillIn(rule.ours, found->numbers);
    auto [place, isNew] = groupOf.try_emplace(ours, groups.size());
    if (isNew)
      groups.push_back({ours, Group{&rule, {}}});
    groups[place->second].second.parts.emplace_back(found->expert.value_or(0), &tensor);
  }
  return any;
}

llvm::Error FolderModel::matchTensors(std::optional<bool> tied) {
  bool hasOutput = false;
  for (const TensorInfo &tensor : source->tensors()) {
    std::string name = textName(tensor.name);
    hasOutput |= name == kOutput;
    if (isPastLayers(name))
      return makeError(
          "{0}: the tensor {1} is of layer {2}, but 'num_hidden_layers' in config.json "
          "is {3}{4}, and they are counted from 0; config.json and the weights don't "
          "belong together",
          fileName(), quote(tensor.name), layerOf(name), layers,
          guesses == 0 ? std::string()
                       : llvm::formatv(" (and 'num_nextn_predict_layers' {0})", guesses).str());
    // A matrix of its own is the output's whatever the flag says.
    if (tied == true && name == kOutput && isEmbedding(tensor))
      continue;
    if (leftOut(name) || match(map.tensors, name, tensor) ||
        (map.shared && match(map.shared(), name, tensor)))
      continue;
    addTensor(tensor.name, tensor);
  }
  if (tied == false && !hasOutput)
    return makeError("{0}: there is no tensor {1}, but tie_word_embeddings is false; fetch the "
                     "missing files",
                     fileName(), quote(kOutput));
  for (auto &[name, group] : groups)
    if (llvm::Error error = addGroup(name, group))
      return error;
  return llvm::Error::success();
}

void FolderModel::addTensor(llvm::StringRef name, TensorInfo info) {
  if (!tensorNames.try_emplace(name, allTensors.size()).second)
    return;
  info.name = keep(name.str());
  if (info.format)
    info.bytes = info.rows() * info.rowBytes();
  allTensors.push_back(std::move(info));
}

llvm::Error FolderModel::addGroup(llvm::StringRef name, Group &group) {
  const TensorInfo &first = *group.parts[0].second;
  const TensorRule &rule = *group.rule;
  bool stacked = rule.theirs.contains('#');
  if (!stacked && group.parts.size() > 1)
    return makeError("{0}: the tensors {1} and {2} mean the same", fileName(), quote(first.name),
                     quote(group.parts[1].second->name));
  // What can't be read is an error where it is used.
  if (llvm::any_of(group.parts, [](auto &part) { return !part.second->format; })) {
    addTensor(name, first);
    return llvm::Error::success();
  }
  if (rule.change == Change::PlusOne || rule.change == Change::NegativeExp)
    return addChanged(name, first, rule);
  if (!stacked && rule.change == Change::None && !rule.rows && !rule.cols && !rule.split) {
    addTensor(name, first);
    return llvm::Error::success();
  }
  llvm::sort(group.parts);
  for (size_t i = 0; i < group.parts.size(); ++i) {
    const TensorInfo &part = *group.parts[i].second;
    if (group.parts[i].first != i)
      return makeError("{0}: of the tensors like {1} number {2} is missing", fileName(),
                       quote(first.name), i);
    if (part.shape != first.shape || part.format != first.format)
      return makeError("{0}: the tensors {1} and {2} differ in shape or type, but are to be "
                       "stacked",
                       fileName(), quote(first.name), quote(part.name));
  }
  return addRows(name, group);
}

llvm::Error FolderModel::orderOf(const TensorInfo &tensor, Order order, int64_t count,
                                 std::vector<int64_t> &indices) const {
  if (!order)
    return llvm::Error::success();
  auto found = order(*source, count);
  if (!found)
    return found.takeError();
  if (found->empty() ||
      llvm::any_of(*found, [&](int64_t index) { return index < 0 || index >= count; }))
    return makeError("{0}: the tensor {1} has {2} rows or columns, which don't fit config.json",
                     fileName(), quote(tensor.name), count);
  indices = std::move(*found);
  return llvm::Error::success();
}

llvm::Error FolderModel::addChanged(llvm::StringRef name, const TensorInfo &tensor,
                                    const TensorRule &rule) {
  if (tensor.elements() > kMostChanged)
    return makeError("{0}: the tensor {1} has {2} values, expected at most {3}", fileName(),
                     quote(tensor.name), tensor.elements(), kMostChanged);
  std::vector<uint8_t> raw(tensor.bytes);
  tensor.readRows(0, tensor.rows(), raw.data());
  auto floats = std::make_unique<std::vector<float>>(tensor.elements());
  const FormatSpec &format = *tensor.format;
  decodeBlocks(format, raw.data(), floats->size() / format.blockWeights, floats->data());
  for (float &value : *floats)
    value = rule.change == Change::PlusOne ? 1.0f + value : -std::exp(value);
  std::vector<int64_t> order;
  if (llvm::Error error = orderOf(tensor, rule.cols, tensor.cols(), order))
    return error;
  if (!order.empty()) {
    assert(int64_t(order.size()) == tensor.cols() && "rules move values of these and drop none");
    std::vector<float> stored = *floats;
    for (size_t i = 0, cols = order.size(); i < stored.size(); ++i)
      (*floats)[i] = stored[i / cols * cols + size_t(order[i % cols])];
  }
  TensorInfo info = tensor;
  info.format = findFormat("f32");
  info.ggufType = info.format->ggufType;
  info.data = reinterpret_cast<const uint8_t *>(floats->data());
  info.reader = nullptr;
  values.push_back(std::move(floats));
  addTensor(name, std::move(info));
  return llvm::Error::success();
}

llvm::Error FolderModel::addRows(llvm::StringRef name, const Group &group) {
  const TensorInfo &first = *group.parts[0].second;
  const TensorRule &rule = *group.rule;
  bool moves = rule.change == Change::Transpose || rule.cols;
  if (moves && first.format->blockWeights != 1)
    return makeError("{0}: the tensor {1} of type {2} can't be read in another order of columns",
                     fileName(), quote(first.name), first.format->name);
  StackedRows stack;
  for (auto &part : group.parts)
    stack.parts.push_back(part.second);
  stack.cols = first.cols();
  stack.rows = first.shape.size() > 1 ? first.shape[1] : 1;
  // A stack of vectors is a matrix: their order is that of its columns.
  stack.matrices = first.rows() / stack.rows;
  if (rule.split) {
    auto count = rule.split(*source);
    if (!count)
      return count.takeError();
    if (*count < 1 || first.shape.size() != 2 || stack.rows % *count != 0)
      return makeError("{0}: the tensor {1} of {2} rows can't be {3} matrices of equal size",
                       fileName(), quote(first.name), stack.rows, *count);
    stack.matrices *= *count;
    stack.rows /= *count;
  }
  stack.transpose = rule.change == Change::Transpose;
  int64_t rows = stack.ourRows(), cols = stack.ourCols();
  if (llvm::Error error = orderOf(first, rule.rows, rows, stack.rowOrder))
    return error;
  if (llvm::Error error = orderOf(first, rule.cols, cols, stack.colOrder))
    return error;
  TensorInfo info = first;
  info.data = nullptr;
  info.shape[0] = stack.ourCols();
  if (info.shape.size() > 1)
    info.shape[1] = stack.ourRows();
  if (rule.split)
    info.shape.push_back(stack.matrices);
  if (rule.theirs.contains('#') && info.shape.size() < 3)
    info.shape.push_back(int64_t(stack.parts.size()));
  else if (rule.theirs.contains('#'))
    info.shape.back() *= int64_t(stack.parts.size());
  info.reader = readStacked(std::move(stack), [this](const uint8_t *data, uint64_t bytes) {
    source->release(data, bytes);
  });
  addTensor(name, std::move(info));
  return llvm::Error::success();
}
