// Chooses a format for each tensor and checks that every choice of the user
// has an effect.

#include "compiler/import/QuantizedSource.h"
#include "compiler/formats/Encode.h"
#include "compiler/formats/Recipes.h"
#include "compiler/import/BitBudget.h"
#include "compiler/import/EncodingReader.h"
#include "compiler/import/ExportKeys.h"
#include "compiler/import/Importance.h"
#include "compiler/support/Error.h"
#include "compiler/support/Numbers.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Regex.h"

#include <cmath>

using namespace izhc;

namespace {
// One --tensor-type.
struct Choice {
  std::string text;
  llvm::Regex pattern;
  const FormatSpec *format;
  bool vectors = false, matrices = false; // that it matches
};

class QuantizedSource final : public ModelSource {
public:
  explicit QuantizedSource(std::unique_ptr<ModelSource> inner) : inner(std::move(inner)) {}

  llvm::Error choose(const QuantizeOptions &options);
  // As QuantizedModel says.
  unsigned encodedTwice = 0;

  const FolderSource *asFolder() const override { return inner->asFolder(); }
  std::optional<llvm::ArrayRef<uint8_t>> companion(llvm::StringRef name) const override {
    return inner->companion(name);
  }
  llvm::StringRef fileName() const override { return inner->fileName(); }
  std::string keyPlace(llvm::StringRef key) const override { return inner->keyPlace(key); }
  std::string tensorName(llvm::StringRef name) const override { return inner->tensorName(name); }
  std::string kindName() const override { return inner->kindName(); }
  uint64_t fileBytes() const override { return inner->fileBytes(); }
  std::vector<MetaInfo> metadata() const override { return inner->metadata(); }
  std::vector<ExportKey> exportKeys() const override;
  bool hasKey(llvm::StringRef key) const override { return inner->hasKey(key); }
  bool isArray(llvm::StringRef key) const override { return inner->isArray(key); }
  llvm::Expected<std::optional<uint64_t>> getUInt(llvm::StringRef key) const override {
    return inner->getUInt(key);
  }
  llvm::Expected<std::optional<int64_t>> getInt(llvm::StringRef key) const override {
    return inner->getInt(key);
  }
  llvm::Expected<std::optional<double>> getFloat(llvm::StringRef key) const override {
    return inner->getFloat(key);
  }
  llvm::Expected<std::optional<bool>> getBool(llvm::StringRef key) const override {
    return inner->getBool(key);
  }
  llvm::Expected<std::optional<llvm::StringRef>> getString(llvm::StringRef key) const override {
    return inner->getString(key);
  }
  llvm::Expected<std::optional<std::vector<llvm::StringRef>>>
  getStringArray(llvm::StringRef key) const override {
    return inner->getStringArray(key);
  }
  llvm::Expected<std::optional<std::vector<float>>>
  getFloatArray(llvm::StringRef key) const override {
    return inner->getFloatArray(key);
  }
  llvm::Expected<std::optional<std::vector<int64_t>>>
  getIntArray(llvm::StringRef key) const override {
    return inner->getIntArray(key);
  }
  llvm::ArrayRef<TensorInfo> tensors() const override { return all; }
  const TensorInfo *findTensor(llvm::StringRef name) const override {
    auto found = places.find(name);
    return found == places.end() ? nullptr : &all[found->second];
  }
  void release(const uint8_t *data, uint64_t bytes) const override { inner->release(data, bytes); }
  std::string hash() const override { return inner->hash(); }

private:
  llvm::Error readChoices(llvm::ArrayRef<std::string> texts);
  llvm::Expected<const FormatSpec *> formatFor(const TensorInfo &tensor, const Recipe *recipe,
                                               int64_t layers);
  llvm::Error convert(TensorInfo &tensor, const FormatSpec &format);
  llvm::Error noEffect(const QuantizeOptions &options) const;
  llvm::Error checkEffect(const QuantizeOptions &options) const;
  llvm::Error spend(double bitsAWeight, int64_t layers);
  llvm::Error checkBudget(llvm::ArrayRef<BudgetMatrix> matrices, double bits,
                          double bitsAWeight) const;
  llvm::Expected<llvm::ArrayRef<float>> importanceOf(const TensorInfo &tensor) const;

  std::unique_ptr<ModelSource> inner;
  std::vector<TensorInfo> all;
  llvm::StringMap<size_t> places;
  int64_t converted = 0, weighed = 0;
  int64_t matrices = 0, keptByChoice = 0; // that a --tensor-type asks for as they are
  std::optional<uint32_t> fileType;
  std::vector<Choice> choices;
  std::optional<Importance> importance;
};
} // namespace

// What the file says of its types is told anew.
std::vector<ExportKey> QuantizedSource::exportKeys() const {
  std::vector<ExportKey> keys = inner->exportKeys();
  if (keys.empty())
    return keys;
  auto number = [&](llvm::StringRef name, uint32_t value) {
    llvm::erase_if(keys, [&](const ExportKey &key) { return key.name == name; });
    keys.push_back(exportNumber(name, value));
  };
  if (fileType)
    number("general.file_type", *fileType);
  number("general.quantization_version", 2);
  return keys;
}

static std::string formatNames() {
  std::vector<llvm::StringRef> names;
  for (const FormatSpec *format : allFormats())
    if (canEncode(*format))
      names.push_back(format->name);
  return llvm::join(names, ", ");
}

// Compiled patterns repeat what has a count, and matching takes time for each of
// their states.
static constexpr double kMostStates = 1e5;

// At least as many as the pattern compiles to, whatever it nests; more where it
// has more groups than the compiler's recursion should go down.
static double mostStates(llvm::StringRef pattern) {
  double states = double(pattern.size());
  if (size_t groups = pattern.count('('); groups > 1000)
    states *= double(groups);
  while (!pattern.empty()) {
    pattern = pattern.split('{').second;
    double most = 1, count;
    llvm::StringRef rest = pattern.take_until([](char c) { return c == '}'; });
    for (llvm::StringRef number : {rest.split(',').first, rest.split(',').second})
      if (!number.getAsDouble(count))
        most = std::max(most, count);
    states *= most;
  }
  return states;
}

llvm::Error QuantizedSource::readChoices(llvm::ArrayRef<std::string> texts) {
  for (llvm::StringRef text : texts) {
    auto [pattern, type] = text.rsplit('=');
    const FormatSpec *format = findFormat(type.lower());
    std::string wrong;
    if (pattern.empty() || type.empty())
      return makeError("--tensor-type {0}: a regular expression, = and a weight type are expected",
                       quote(text));
    if (!format || !canEncode(*format))
      return makeError("--tensor-type {0}: weights can't be encoded as {1}; known are {2}",
                       quote(text), quote(type), formatNames());
    if (double states = mostStates(pattern); states > kMostStates)
      return makeError("--tensor-type {0}: the length of the pattern times its counts and its open "
                       "groups is {1}, and at most {2} is taken; use smaller counts or several "
                       "--tensor-type",
                       quote(text), shortText(states), int(kMostStates));
    llvm::Regex regex(pattern);
    if (!regex.isValid(wrong))
      return makeError("--tensor-type {0}: {1} is no regular expression: {2}", quote(text),
                       quote(pattern), wrong);
    choices.push_back({text.str(), std::move(regex), format});
  }
  return llvm::Error::success();
}

// nullptr: as it is.
llvm::Expected<const FormatSpec *>
QuantizedSource::formatFor(const TensorInfo &tensor, const Recipe *recipe, int64_t layers) {
  const FormatSpec *chosen = nullptr;
  for (Choice &choice : choices)
    if (choice.pattern.match(tensor.name)) {
      // Vectors keep their type.
      (tensor.shape.size() < 2 ? choice.vectors : choice.matrices) = true;
      chosen = choice.format;
    }
  if (tensor.shape.size() < 2)
    return nullptr;
  ++matrices;
  keptByChoice += chosen == tensor.format;
  if (chosen) {
    if (tensor.cols() % chosen->blockWeights != 0)
      return makeError("{0}: tensor {1} has rows of {2} weights, which are no whole blocks of {3} "
                       "({4} weights); give a further --tensor-type that matches it and names "
                       "another type: the last one that matches counts",
                       fileName(), quote(tensor.name), tensor.cols(), chosen->name,
                       chosen->blockWeights);
    return chosen;
  }
  if (!recipe)
    return nullptr;
  bool tied = !inner->findTensor("output.weight");
  chosen = chooseFormat(*recipe, {tensor.name, tensor.shape, layers, tied});
  // Nothing is won by more bits than there are.
  auto bits = [](const FormatSpec &format) {
    return double(format.blockBytes) / format.blockWeights;
  };
  return chosen && bits(*chosen) < bits(*tensor.format) ? chosen : nullptr;
}

llvm::Expected<llvm::ArrayRef<float>>
QuantizedSource::importanceOf(const TensorInfo &tensor) const {
  if (!importance)
    return llvm::ArrayRef<float>();
  llvm::ArrayRef<float> values = importance->find(tensor.name);
  int64_t experts = tensor.shape.size() > 2 ? tensor.shape[2] : 1;
  if (!values.empty() && int64_t(values.size()) != tensor.cols() &&
      int64_t(values.size()) != tensor.cols() * experts)
    return makeError("{0}: the importance of {1} has {2} values, but its rows have {3} weights: "
                     "the file is of another model",
                     importance->fileName(), quote(tensor.name), values.size(), tensor.cols());
  return values;
}

// Float types and codes of 8 bits add next to nothing to other errors.
static bool losesMuch(const FormatSpec &format) {
  return format.kind == ElementKind::Quantized && format.codeBits < 8;
}

llvm::Error QuantizedSource::convert(TensorInfo &tensor, const FormatSpec &format) {
  llvm::Expected<llvm::ArrayRef<float>> values = importanceOf(tensor);
  if (!values)
    return values.takeError();
  weighed += !values->empty();
  ++converted;
  encodedTwice += losesMuch(*tensor.format) && losesMuch(format);
  tensor.reader =
      encodingReader(tensor, format, values->vec(),
                     [this](const uint8_t *data, uint64_t bytes) { inner->release(data, bytes); });
  tensor.format = &format;
  tensor.ggufType = format.ggufType;
  tensor.data = nullptr;
  tensor.bytes = uint64_t(tensor.rows()) * tensor.rowBytes();
  return llvm::Error::success();
}

// Even the smallest formats may take more than there is.
llvm::Error QuantizedSource::checkBudget(llvm::ArrayRef<BudgetMatrix> matrices, double bits,
                                         double bitsAWeight) const {
  double least = 0, weights = 0;
  for (const BudgetMatrix &matrix : matrices)
    least += 8.0 * matrix.formats.front()->blockBytes / matrix.formats.front()->blockWeights *
             double(matrix.stored->elements());
  if (least <= bits)
    return llvm::Error::success();
  for (const TensorInfo &tensor : all)
    weights += double(tensor.elements());
  double needed = std::ceil(100 * (bitsAWeight + (least - bits) / weights)) / 100;
  return makeError("{0}: --target-bpw {1} can't be had: with the smallest types that its matrices "
                   "may take the model has {2} bits a weight; give that or more",
                   fileName(), shortText(bitsAWeight), shortText(needed));
}

// Leaves out what can't hold the matrix's weights; the type that it has can.
static void dropTooNarrow(const TensorInfo &tensor,
                          llvm::SmallVectorImpl<const FormatSpec *> &ladder) {
  auto narrower = [&](double most) {
    return [&, most](const FormatSpec *format) {
      return format != tensor.format && largestWeight(*format) < most;
    };
  };
  // Weights are read only where there may be such.
  if (llvm::any_of(ladder, narrower(largestWeight(*tensor.format))))
    llvm::erase_if(ladder, narrower(largestMagnitude(tensor)));
}

// What no --tensor-type names shares the bits that the rest leaves.
llvm::Error QuantizedSource::spend(double bitsAWeight, int64_t layers) {
  bool tied = !inner->findTensor("output.weight");
  double bits = 0;
  std::vector<BudgetMatrix> matrices;
  std::vector<TensorInfo *> places;
  for (TensorInfo &tensor : all) {
    bits += bitsAWeight * double(tensor.elements());
    bool named = llvm::any_of(choices, [&](Choice &c) { return c.pattern.match(tensor.name); });
    llvm::SmallVector<const FormatSpec *> ladder;
    if (tensor.format && !named)
      ladder = formatLadder({tensor.name, tensor.shape, layers, tied}, *tensor.format);
    if (!ladder.empty())
      dropTooNarrow(tensor, ladder);
    if (ladder.empty()) {
      bits -= 8.0 * double(tensor.bytes);
      continue;
    }
    llvm::Expected<llvm::ArrayRef<float>> values = importanceOf(tensor);
    if (!values)
      return values.takeError();
    places.push_back(&tensor);
    matrices.push_back({&tensor, *values, std::move(ladder)});
  }
  if (llvm::Error error = checkBudget(matrices, bits, bitsAWeight))
    return error;
  std::vector<const FormatSpec *> formats = spendBits(matrices, bits);
  for (auto [tensor, format] : llvm::zip_equal(places, formats)) {
    if (format == tensor->format)
      continue;
    if (llvm::Error error = convert(*tensor, *format))
      return error;
  }
  return llvm::Error::success();
}

llvm::Error QuantizedSource::noEffect(const QuantizeOptions &options) const {
  std::string quant = "--quant " + options.recipe;
  if (keptByChoice == 0)
    return makeError("{0}: {1} would change no tensor: all have as few bits already; leave it out, "
                     "or start from a file with more bits",
                     fileName(), options.recipe.empty() ? "this choice of types" : quant);
  std::string rest;
  if (keptByChoice < matrices && !options.recipe.empty())
    rest = ", and the others have as few bits as " + quant + " gives";
  return makeError("{0}: this choice of types would change no tensor: {1} of {2} matrices have the "
                   "type already that --tensor-type names for them{3}; leave the choice out, or "
                   "name other types",
                   fileName(), keptByChoice, matrices, rest);
}

llvm::Error QuantizedSource::checkEffect(const QuantizeOptions &options) const {
  for (const Choice &choice : choices)
    if (!choice.matrices)
      return makeError("--tensor-type {0}: {1}", quote(choice.text),
                       choice.vectors ? "what matches in " + fileName() +
                                            " are vectors only, and those keep their type"
                                      : "no tensor of " + fileName() + " has a name that matches");
  if (converted == 0)
    return noEffect(options);
  if (importance && weighed == 0)
    return makeError("{0}: no entry is of a tensor that is quantized: the file is of another model",
                     importance->fileName());
  return llvm::Error::success();
}

llvm::Error QuantizedSource::choose(const QuantizeOptions &options) {
  // Also false for what is no number.
  if (options.targetBits != 0 && !(options.targetBits >= 2 && options.targetBits <= 32))
    return makeError("--target-bpw takes a number from 2 to 32, not {0}",
                     shortText(options.targetBits));
  const Recipe *recipe = nullptr;
  if (!options.recipe.empty()) {
    llvm::Expected<const Recipe *> found = requireRecipe(options.recipe);
    if (!found)
      return found.takeError();
    recipe = *found;
  }
  if (recipe)
    fileType = recipe->fileType;
  if (llvm::Error error = readChoices(options.tensorTypes))
    return error;
  if (!options.importance.empty()) {
    llvm::Expected<Importance> read = readImportance(options.importance);
    if (!read)
      return read.takeError();
    importance = std::move(*read);
  }
  int64_t layers = 0;
  all.assign(inner->tensors().begin(), inner->tensors().end());
  for (const TensorInfo &tensor : all) {
    llvm::StringRef name = tensor.name;
    int64_t layer;
    if (name.consume_front("blk.") && !name.consumeInteger(10, layer))
      layers = std::max(layers, layer + 1);
  }
  for (size_t i = 0; i < all.size(); ++i) {
    TensorInfo &tensor = all[i];
    places[tensor.name] = i;
    if (!tensor.format)
      continue;
    llvm::Expected<const FormatSpec *> format = formatFor(tensor, recipe, layers);
    if (!format)
      return format.takeError();
    if (!*format || *format == tensor.format)
      continue;
    if (llvm::Error error = convert(tensor, **format))
      return error;
  }
  if (options.targetBits > 0)
    if (llvm::Error error = spend(options.targetBits, layers))
      return error;
  return checkEffect(options);
}

llvm::Expected<QuantizedModel> izhc::quantizeSource(std::unique_ptr<ModelSource> model,
                                                    const QuantizeOptions &options) {
  auto source = std::make_unique<QuantizedSource>(std::move(model));
  if (llvm::Error error = source->choose(options))
    return std::move(error);
  unsigned encodedTwice = source->encodedTwice;
  return QuantizedModel{std::move(source), encodedTwice};
}
