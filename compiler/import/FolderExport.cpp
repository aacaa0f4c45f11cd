// A folder's keys as a GGUF file would hold them. Readers of GGUF want the very
// type that a key has there, which config.json doesn't tell: 10000 may be an
// integer or a float.

#include "compiler/import/ExportKeys.h"
#include "compiler/import/FolderModel.h"
#include "llvm/ADT/STLExtras.h"

using namespace izhc;

namespace {

// Keys that end so are floats.
constexpr llvm::StringLiteral kFloats[] = {
    "epsilon",          "freq_base",
    "freq_base_swa",    "_factor",
    ".factor",          "scale",
    "softcapping",      "yarn_beta_fast",
    "yarn_beta_slow",   "yarn_log_multiplier",
    "swiglu_clamp_exp", "swiglu_clamp_shexp",
};

bool isFloat(llvm::StringRef key) {
  return llvm::any_of(kFloats, [&](llvm::StringRef end) { return key.ends_with(end); });
}

ExportKey arrayOf(llvm::StringRef key, llvm::ArrayRef<Json> items) {
  llvm::SmallVector<bool> flags;
  std::vector<int32_t> numbers;
  std::vector<float> floats;
  std::vector<std::string> texts;
  for (const Json &item : items) {
    if (auto flag = item.asBool())
      flags.push_back(*flag);
    if (auto number = item.asInt())
      numbers.push_back(int32_t(*number));
    if (auto number = item.asNumber())
      floats.push_back(float(*number));
    if (auto text = item.asString())
      texts.push_back(text->str());
  }
  if (flags.size() == items.size())
    return exportFlags(key, flags);
  if (numbers.size() == items.size() && !isFloat(key))
    return exportNumbers(key, numbers);
  if (floats.size() == items.size())
    return exportFloats(key, floats);
  return exportTexts(key, texts);
}

} // namespace

std::vector<ExportKey> FolderModel::exportKeys() const {
  std::vector<ExportKey> list;
  for (const std::string &key : keyOrder) {
    const Json *found = value(key);
    if (!found || found->isNull())
      continue;
    if (found->isArray())
      list.push_back(arrayOf(key, found->items()));
    else if (auto flag = found->asBool())
      list.push_back(exportFlag(key, *flag));
    else if (auto text = found->asString())
      list.push_back(exportText(key, *text));
    else if (auto number = found->asInt(); number && !isFloat(key))
      list.push_back(exportNumber(key, uint32_t(*number)));
    else if (auto real = found->asNumber())
      list.push_back(exportFloat(key, float(*real)));
  }
  return list;
}
