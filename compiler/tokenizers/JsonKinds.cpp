// One table, and a walk over objects and lists. null stands for absent.

#include "compiler/tokenizers/JsonKinds.h"

#include "compiler/import/JsonSource.h"
#include "compiler/support/Error.h"
#include "llvm/ADT/STLExtras.h"

using namespace izhc;

namespace {

constexpr unsigned bit(Json::Kind kind) { return 1u << unsigned(kind); }
constexpr unsigned kFlag = bit(Json::Kind::Bool), kText = bit(Json::Kind::String),
                   kCount = bit(Json::Kind::Integer), kList = bit(Json::Kind::Array),
                   kObject = bit(Json::Kind::Object);

struct Known {
  llvm::StringLiteral key;
  unsigned kinds;
};

constexpr Known kKnown[] = {
    {"type", kText},
    {"content", kText},
    {"pattern", kObject},
    {"String", kText},
    {"Regex", kText},
    {"behavior", kText},
    {"replacement", kText},
    {"prepend", kText},
    {"prepend_scheme", kText},
    {"precompiled_charsmap", kText},
    {"unk_token", kText | kObject},
    {"bos_token", kText | kObject},
    {"eos_token", kText | kObject},
    {"chat_template", kText | kList},
    {"continuing_subword_prefix", kText},
    {"end_of_word_suffix", kText},
    {"unk_id", kCount},
    {"max_input_chars_per_word", kCount},
    {"added_tokens", kList},
    {"normalizers", kList},
    {"pretokenizers", kList},
    {"processors", kList},
    {"decoders", kList},
    {"single", kList},
    {"cls", kList},
    {"sep", kList},
    {"special", kFlag},
    {"single_word", kFlag},
    {"lstrip", kFlag},
    {"rstrip", kFlag},
    {"strip_left", kFlag},
    {"strip_right", kFlag},
    {"clean_text", kFlag},
    {"handle_chinese_chars", kFlag},
    {"lowercase", kFlag},
    {"strip_accents", kFlag},
    {"individual_digits", kFlag},
    {"add_prefix_space", kFlag},
    {"add_bos_token", kFlag},
    {"add_eos_token", kFlag},
    {"use_regex", kFlag},
    {"invert", kFlag},
    {"split", kFlag},
    {"byte_fallback", kFlag},
    {"fuse_unk", kFlag},
    {"ignore_merges", kFlag},
};

// Objects whose keys are tokens, and lists of many.
constexpr llvm::StringLiteral kLeftOut[] = {"vocab", "merges", "special_tokens"};

std::string namesOf(unsigned kinds) {
  std::string names;
  for (auto [kind, name] : {std::pair(kText, "a string"),
                            {kFlag, "true or false"},
                            {kCount, "an integer"},
                            {kList, "a list"},
                            {kObject, "an object"}})
    if (kinds & kind)
      names += (names.empty() ? "" : " or ") + std::string(name);
  return names;
}

llvm::Error check(llvm::StringRef file, const Json &json, const std::string &path, bool deep) {
  for (size_t i = 0; i < json.items().size(); ++i) {
    const Json &value = json.items()[i];
    if (json.isArray()) {
      if (llvm::Error error = check(file, value, llvm::formatv("{0}[{1}]", path, i).str(), deep))
        return error;
      continue;
    }
    llvm::StringRef key = json.key(i);
    std::string place = (path.empty() ? "" : path + ".") + key.str();
    const Known *known = llvm::find_if(kKnown, [&](const Known &one) { return one.key == key; });
    if (known != std::end(kKnown) && !value.isNull() && !(known->kinds & bit(value.kind())))
      return makeError("{0}: {1} is {2}, expected {3}; correct the file, or fetch it again", file,
                       quote(place), jsonText(value), namesOf(known->kinds));
    if (deep && !llvm::is_contained(kLeftOut, key))
      if (llvm::Error error = check(file, value, place, deep))
        return error;
  }
  return llvm::Error::success();
}

} // namespace

llvm::Error izhc::checkKinds(llvm::StringRef file, const Json &json, bool deep) {
  return json.isObject() ? check(file, json, "", deep) : llvm::Error::success();
}
