// Normalizer, pre-tokenizer, post-processor and decoder of tokenizer.json.

#include "compiler/tokenizers/JsonPipeline.h"

#include "compiler/support/Error.h"
#include "compiler/tokenizers/PreTokenizer.h"
#include "llvm/Support/Base64.h"

using namespace izhc;
using izh::schema::NormalStepKind;

namespace {

constexpr llvm::StringLiteral kSpace("\xe2\x96\x81");
// What steps that need no pattern of their own cut by.
constexpr llvm::StringLiteral
    kWords(R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)");
constexpr llvm::StringLiteral
    kPunctuation(R"([\p{P}\x{21}-\x{2f}\x{3a}-\x{40}\x{5b}-\x{60}\x{7b}-\x{7e}])");

llvm::StringRef textOf(const Json &object, llvm::StringRef key) {
  const Json *value = object.find(key);
  return value ? value->asString().value_or("") : "";
}

bool flagOf(const Json &object, llvm::StringRef key, bool otherwise) {
  const Json *value = object.find(key);
  return value ? value->asBool().value_or(otherwise) : otherwise;
}

// A literal text as a pattern.
std::string escapePattern(llvm::StringRef text) {
  std::string out;
  for (char c : text) {
    if (llvm::StringRef(R"(\^$.[]|()?*+{}-#)").contains(c))
      out += '\\';
    out += c;
  }
  return out;
}

class PipelineReader {
public:
  PipelineReader(const ModelSource &source, const Json &root) : source(source), root(root) {}

  llvm::Expected<JsonPipeline> run() {
    for (auto [section, read] : {std::pair("normalizer", &PipelineReader::normalize),
                                 std::pair("pre_tokenizer", &PipelineReader::preTokenize),
                                 std::pair("post_processor", &PipelineReader::postProcess),
                                 std::pair("decoder", &PipelineReader::decode)}) {
      const Json *value = root.find(section);
      if (llvm::Error error = each(section, value, read))
        return std::move(error);
    }
    return std::move(pipeline);
  }

private:
  using Step = llvm::Error (PipelineReader::*)(const Json &step, llvm::StringRef type);

  // Calls `read` for a step, or for those of a sequence in order.
  llvm::Error each(llvm::StringRef section, const Json *step, Step read) {
    if (!step || step->isNull())
      return llvm::Error::success();
    llvm::StringRef type = textOf(*step, "type");
    if (type == "Sequence") {
      for (const char *list : {"normalizers", "pretokenizers", "processors", "decoders"})
        if (const Json *steps = step->find(list))
          for (const Json &one : steps->items())
            if (llvm::Error error = each(section, &one, read))
              return error;
      return llvm::Error::success();
    }
    current = section;
    return (this->*read)(*step, type);
  }

  llvm::Error unknown(llvm::StringRef what) const {
    return makeError("{0}/tokenizer.json: the {1} has a step {2}, which izh doesn't know; other "
                     "tokens than the model's would come out, so it is not compiled",
                     source.fileName(), current, quote(what));
  }

  llvm::Error normalize(const Json &step, llvm::StringRef type) {
    constexpr std::pair<llvm::StringLiteral, NormalStepKind> plain[] = {
        {"NFC", NormalStepKind::Compose},         {"NFD", NormalStepKind::Decompose},
        {"NFKC", NormalStepKind::CompatCompose},  {"NFKD", NormalStepKind::CompatDecompose},
        {"Lowercase", NormalStepKind::Lowercase}, {"StripAccents", NormalStepKind::StripMarks},
    };
    for (auto [name, kind] : plain)
      if (type == name)
        return add(kind);
    if (type == "Strip") {
      if (flagOf(step, "strip_left", true))
        push(NormalStepKind::StripLeft);
      return flagOf(step, "strip_right", true) ? add(NormalStepKind::StripRight)
                                               : llvm::Error::success();
    }
    if (type == "Precompiled")
      return precompiled(step);
    if (type == "BertNormalizer") {
      BertRules rules;
      rules.clean = flagOf(step, "clean_text", true);
      rules.spaceIdeographs = flagOf(step, "handle_chinese_chars", true);
      rules.lowercase = flagOf(step, "lowercase", true);
      rules.stripAccents = flagOf(step, "strip_accents", rules.lowercase);
      TokenizerTables tables;
      addBertSteps(rules, tables);
      pipeline.steps.insert(pipeline.steps.end(), tables.steps.begin(), tables.steps.end());
      return llvm::Error::success();
    }
    if (type == "Prepend" && textOf(step, "prepend") == kSpace) {
      pipeline.spacePrefix = true;
      return llvm::Error::success();
    }
    const Json *pattern = step.find("pattern");
    if (type == "Replace" && pattern && textOf(*pattern, "String") == " " &&
        textOf(step, "content") == kSpace) {
      pipeline.escapesSpaces = true;
      return llvm::Error::success();
    }
    llvm::StringRef text = pattern ? textOf(*pattern, "String") : "";
    if (type == "Replace" && !text.empty())
      return add(NormalStepKind::Replace, text.str(), textOf(step, "content").str());
    if (type == "Replace" && pattern && textOf(*pattern, "Regex") == " {2,}")
      return add(NormalStepKind::ReplaceSpaces, "", textOf(step, "content").str());
    return unknown(type);
  }

  void push(NormalStepKind kind, std::string from = "", std::string to = "") {
    pipeline.steps.push_back({kind, std::move(from), std::move(to)});
  }
  llvm::Error add(NormalStepKind kind, std::string from = "", std::string to = "") {
    push(kind, std::move(from), std::move(to));
    return llvm::Error::success();
  }

  // A map of SentencePiece, in base 64.
  llvm::Error precompiled(const Json &step) {
    std::vector<char> bytes;
    llvm::StringRef text = textOf(step, "precompiled_charsmap");
    if (llvm::Error error = llvm::decodeBase64(text, bytes)) {
      llvm::consumeError(std::move(error));
      return unknown("Precompiled, whose map is no base 64");
    }
    std::string map(bytes.begin(), bytes.end());
    if (!map.empty() && !isCharsmap(map))
      return unknown("Precompiled, whose map is damaged");
    return map.empty() ? llvm::Error::success() : add(NormalStepKind::CharsmapGraphemes, map);
  }

  llvm::Error preTokenize(const Json &step, llvm::StringRef type) {
    if (type == "ByteLevel")
      return byteLevel(step);
    if (type == "Split")
      return split(step);
    if (type == "Digits") {
      bool each = flagOf(step, "individual_digits", false);
      pipeline.patterns.push_back(each ? R"(\p{N})" : R"(\p{N}+)");
      return llvm::Error::success();
    }
    if (type == "Punctuation") {
      llvm::StringRef behavior = textOf(step, "behavior");
      if (behavior != "Isolated" && behavior != "Contiguous" && !behavior.empty())
        return unknown(("Punctuation, " + behavior).str());
      pipeline.patterns.push_back(kPunctuation.str() + (behavior == "Contiguous" ? "+" : ""));
      return llvm::Error::success();
    }
    if (type == "Metaspace")
      return metaspace(step);
    if (type == "BertPreTokenizer" && pipeline.patterns.empty()) {
      pipeline.bertWords = true;
      return llvm::Error::success();
    }
    // Metaspace behind it puts the spaces back.
    if (type == "WhitespaceSplit" && pipeline.patterns.empty()) {
      push(NormalStepKind::Blanks);
      TokenizerTables tables;
      dropExtraSpaces(tables);
      pipeline.steps.insert(pipeline.steps.end(), tables.steps.begin(), tables.steps.end());
      // A word that begins with one gets no other.
      push(NormalStepKind::Replace, " " + kSpace.str(), kSpace.str());
      return llvm::Error::success();
    }
    return unknown(type);
  }

  llvm::Error byteLevel(const Json &step) {
    if (flagOf(step, "add_prefix_space", false)) {
      // Otherwise each piece would get one.
      if (!pipeline.patterns.empty())
        return unknown("ByteLevel with add_prefix_space behind other steps");
      pipeline.spacePrefix = pipeline.spacePrefixSkips = true;
    }
    pipeline.byteLevel = true;
    if (flagOf(step, "use_regex", true))
      pipeline.patterns.push_back(toPcre2(kWords));
    return llvm::Error::success();
  }

  llvm::Error split(const Json &step) {
    llvm::StringRef behavior = textOf(step, "behavior");
    bool inverted = flagOf(step, "invert", false);
    const Json *pattern = step.find("pattern");
    llvm::StringRef literal = pattern ? textOf(*pattern, "String") : "";
    llvm::StringRef regex = pattern ? textOf(*pattern, "Regex") : "";
    // There are no spaces any more to split at.
    if (literal == " " && pipeline.escapesSpaces)
      return llvm::Error::success();
    // Keeping the matches and dropping the rest is the same where matches
    // cover everything, as the patterns of such files do.
    if (!(behavior == "Isolated" || (behavior == "Removed" && inverted)) ||
        (literal.empty() && regex.empty()))
      return unknown(("Split, " + behavior).str());
    pipeline.patterns.push_back(literal.empty() ? toPcre2(regex) : escapePattern(literal));
    return llvm::Error::success();
  }

  llvm::Error metaspace(const Json &step) {
    llvm::StringRef replacement = textOf(step, "replacement");
    llvm::StringRef scheme = textOf(step, "prepend_scheme");
    if (replacement != kSpace)
      return unknown("Metaspace with another character");
    if (scheme.empty())
      scheme = flagOf(step, "add_prefix_space", true) ? "always" : "never";
    if (scheme != "always" && scheme != "first" && scheme != "never")
      return unknown(("Metaspace, " + scheme).str());
    pipeline.escapesSpaces = true;
    pipeline.splitSpaces = flagOf(step, "split", true);
    pipeline.spacePrefix = scheme != "never";
    pipeline.spacePrefixOnce = scheme == "first";
    pipeline.spacePrefixSkips = true;
    return llvm::Error::success();
  }

  llvm::Error postProcess(const Json &step, llvm::StringRef type) {
    if (type == "ByteLevel")
      return llvm::Error::success();
    if (type == "BertProcessing" || type == "RobertaProcessing") {
      pipeline.before = firstText(step.find("cls"));
      pipeline.after = firstText(step.find("sep"));
      return llvm::Error::success();
    }
    if (type != "TemplateProcessing")
      return unknown(type);
    bool behind = false;
    const Json *single = step.find("single");
    for (const Json &part : single ? single->items() : llvm::ArrayRef<Json>()) {
      behind |= part.find("Sequence") != nullptr;
      const Json *special = part.find("SpecialToken");
      if (!special)
        continue;
      std::string &place = behind ? pipeline.after : pipeline.before;
      if (!place.empty())
        return unknown("TemplateProcessing with two tokens on one side");
      place = textOf(*special, "id").str();
    }
    return llvm::Error::success();
  }

  static std::string firstText(const Json *pair) {
    if (!pair || pair->items().empty())
      return "";
    return pair->items()[0].asString().value_or("").str();
  }

  // Detokenizing is the inverse of what was read above.
  llvm::Error decode(const Json &, llvm::StringRef type) {
    for (llvm::StringRef known :
         {"ByteLevel", "ByteFallback", "Fuse", "Replace", "Strip", "Metaspace", "WordPiece"})
      if (type == known)
        return llvm::Error::success();
    return unknown(type);
  }

  const ModelSource &source;
  const Json &root;
  JsonPipeline pipeline;
  llvm::StringRef current;
};

} // namespace

llvm::Expected<JsonPipeline> izhc::readPipeline(const ModelSource &source, const Json &root) {
  return PipelineReader(source, root).run();
}
