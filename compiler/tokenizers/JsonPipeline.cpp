// Normalizer, pre-tokenizer, post-processor and decoder of tokenizer.json.

#include "compiler/tokenizers/JsonPipeline.h"

#include "compiler/support/Error.h"
#include "compiler/tokenizers/Charsmap.h"
#include "compiler/tokenizers/JsonFields.h"
#include "compiler/tokenizers/PatternSyntax.h"
#include "compiler/tokenizers/PatternTree.h"
#include "compiler/tokenizers/PreTokenizer.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
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
      current = section;
      if (llvm::Error error = each(root.find(section), read))
        return std::move(error);
      if (section == llvm::StringRef("normalizer"))
        pipeline.normalSteps = pipeline.steps.size();
    }
    // Words of BERT's kind have spaces around them and no prefix.
    if (!pipeline.byteLevel && !pipeline.bertWords)
      if (llvm::Error error = foldSpaces())
        return std::move(error);
    return std::move(pipeline);
  }

private:
  using Step = llvm::Error (PipelineReader::*)(JsonFields &step, llvm::StringRef type);

  // Calls `read` for a step, or for those of a sequence in order.
  llvm::Error each(const Json *step, Step read) {
    if (!step || step->isNull())
      return llvm::Error::success();
    JsonFields fields(*step);
    llvm::StringRef type = fields.text("type");
    if (type == "Sequence") {
      bool found = false;
      for (const char *list : {"normalizers", "pretokenizers", "processors", "decoders"})
        if (const Json *steps = fields.value(list)) {
          found |= steps->isArray();
          for (const Json &one : steps->items())
            if (llvm::Error error = each(&one, read))
              return error;
        }
      if (!found)
        return unknown(type, "without a list of steps");
    } else if (llvm::Error error = (this->*read)(fields, type)) {
      // A field of the wrong kind comes first: it may be why.
      if (fields.wrongKind().empty())
        return error;
      llvm::consumeError(std::move(error));
    }
    std::string problem = fields.problem();
    return problem.empty() ? llvm::Error::success() : unknown(type, problem);
  }

  llvm::Error unknown(llvm::StringRef type, llvm::StringRef why = "") const {
    return makeError("{0}/tokenizer.json: the {1} has a step {2}{3}, which izh doesn't know; other "
                     "tokens than the model's would come out, so it is not compiled",
                     source.fileName(), current, quote(type),
                     why.empty() ? "" : (" (" + why + ")").str());
  }

  //===--------------------------------------------------------------------===//
  // Normalizer
  //===--------------------------------------------------------------------===//

  llvm::Error normalize(JsonFields &step, llvm::StringRef type) {
    constexpr std::pair<llvm::StringLiteral, NormalStepKind> plain[] = {
        {"NFC", NormalStepKind::Compose},         {"NFD", NormalStepKind::Decompose},
        {"NFKC", NormalStepKind::CompatCompose},  {"NFKD", NormalStepKind::CompatDecompose},
        {"Lowercase", NormalStepKind::Lowercase}, {"StripAccents", NormalStepKind::StripMarks},
    };
    for (auto [name, kind] : plain)
      if (type == name)
        return add(kind);
    if (type == "Strip") {
      if (step.flag("strip_left", true))
        push(NormalStepKind::StripLeft);
      return step.flag("strip_right", true) ? add(NormalStepKind::StripRight)
                                            : llvm::Error::success();
    }
    if (type == "Precompiled")
      return precompiled(step);
    if (type == "BertNormalizer") {
      BertRules rules;
      rules.clean = step.flag("clean_text", true);
      rules.spaceIdeographs = step.flag("handle_chinese_chars", true);
      rules.lowercase = step.flag("lowercase", true);
      rules.stripAccents = step.flag("strip_accents", rules.lowercase);
      TokenizerTables tables;
      addBertSteps(rules, tables);
      pipeline.steps.insert(pipeline.steps.end(), tables.steps.begin(), tables.steps.end());
      return llvm::Error::success();
    }
    if (type == "Prepend")
      return add(NormalStepKind::Prepend, "", step.text("prepend").str());
    if (type == "Replace")
      return replace(step);
    return unknown(type);
  }

  llvm::Error replace(JsonFields &step) {
    llvm::StringRef content = step.text("content");
    auto [literal, regex] = patternOf(step);
    if (regex == " {2,}")
      return add(NormalStepKind::ReplaceSpaces, "", content.str());
    if (literal.empty())
      return unknown("Replace", ("of the pattern " + quote(regex)));
    escapes |= literal == " " && content == kSpace;
    return add(NormalStepKind::Replace, literal.str(), content.str());
  }

  // A literal text or a regular expression; the other one is empty.
  std::pair<llvm::StringRef, llvm::StringRef> patternOf(JsonFields &step) const {
    const Json *pattern = step.value("pattern");
    const Json *literal = pattern ? pattern->find("String") : nullptr;
    const Json *regex = pattern && !literal ? pattern->find("Regex") : nullptr;
    return {literal ? literal->asString().value_or("") : "",
            regex ? regex->asString().value_or("") : ""};
  }

  void push(NormalStepKind kind, std::string from = "", std::string to = "") {
    pipeline.steps.push_back({kind, std::move(from), std::move(to)});
  }
  llvm::Error add(NormalStepKind kind, std::string from = "", std::string to = "") {
    push(kind, std::move(from), std::move(to));
    return llvm::Error::success();
  }

  // A map of SentencePiece, in base 64.
  llvm::Error precompiled(JsonFields &step) {
    std::vector<char> bytes;
    if (llvm::Error error = llvm::decodeBase64(step.text("precompiled_charsmap"), bytes)) {
      llvm::consumeError(std::move(error));
      return unknown("Precompiled", "whose map is no base 64");
    }
    std::string map(bytes.begin(), bytes.end());
    if (map.empty())
      return llvm::Error::success();
    if (std::string problem = charsmapProblem(map); !problem.empty())
      return makeError("{0}/tokenizer.json: the map of characters of the normalizer {1}",
                       source.fileName(), problem);
    return add(NormalStepKind::CharsmapGraphemes, map);
  }

  static bool isEscape(const TextStep &step) {
    return step.kind == NormalStepKind::Replace && step.from == " " && step.to == kSpace;
  }
  static bool isPrefix(const TextStep &step) {
    return step.kind == NormalStepKind::Prepend && step.to == kSpace;
  }
  // Whether there may be spaces in a text behind the step that had none.
  static bool makesSpaces(const TextStep &step) {
    switch (step.kind) {
    case NormalStepKind::Replace:
    case NormalStepKind::ReplaceSpaces:
    case NormalStepKind::Prepend:
      return llvm::StringRef(step.to).contains(' ');
    case NormalStepKind::Compose:
    case NormalStepKind::Decompose:
    case NormalStepKind::Lowercase:
    case NormalStepKind::StripMarks:
    case NormalStepKind::StripNonspacing:
    case NormalStepKind::StripLeft:
    case NormalStepKind::StripRight:
      return false;
    default:
      return true;
    }
  }

  // Whether the step may leave nothing of a text's first characters. Maps do so to
  // control characters alone.
  static bool dropsCharacters(const TextStep &step) {
    switch (step.kind) {
    case NormalStepKind::Replace:
    case NormalStepKind::ReplaceSpaces:
      return step.to.empty();
    case NormalStepKind::Clean:
    case NormalStepKind::StripMarks:
    case NormalStepKind::StripNonspacing:
    case NormalStepKind::StripLeft:
      return true;
    default:
      return false;
    }
  }

  // Whether tokens are looked for in what the normalizer makes of a text.
  bool looksBehindSteps() const {
    const Json *added = root.find("added_tokens");
    return added && llvm::any_of(added->items(), [](const Json &token) {
             const Json *normalized = token.find("normalized");
             return normalized && normalized->asBool().value_or(false);
           });
  }

  // Where the normalizer ends with U+2581 for spaces and one in front, encoding
  // does that. Anywhere else they are steps like others: those behind see them, and
  // so do tokens that are looked for behind all steps.
  llvm::Error foldSpaces() {
    std::vector<TextStep> &steps = pipeline.steps;
    bool seen = looksBehindSteps();
    if (seen && llvm::any_of(steps, isPrefix))
      pipeline.spacePrefix = pipeline.prefixInSteps = true;
    bool last = steps.size() == pipeline.normalSteps && !seen;
    while (last && !steps.empty()) {
      if (isEscape(steps.back()))
        pipeline.escapesSpaces = true;
      else if (isPrefix(steps.back()) && !pipeline.spacePrefix)
        pipeline.spacePrefix = true;
      else
        break;
      steps.pop_back();
      --pipeline.normalSteps;
    }
    for (size_t i = 0; i < steps.size(); ++i) {
      if (!isEscape(steps[i]))
        continue;
      pipeline.escapesSpaces = true;
      current = "normalizer";
      for (size_t behind = i + 1; behind < steps.size(); ++behind)
        if (makesSpaces(steps[behind]))
          return unknown("Replace", "of spaces by U+2581, before a step that makes spaces");
    }
    return llvm::Error::success();
  }

  //===--------------------------------------------------------------------===//
  // Pre-tokenizer
  //===--------------------------------------------------------------------===//

  llvm::Error preTokenize(JsonFields &step, llvm::StringRef type) {
    if (type == "Split")
      return split(step);
    if (type == "Digits") {
      bool each = step.flag("individual_digits", false);
      return cutAround(R"(\p{N})", isDigitLetter, each);
    }
    if (type == "Punctuation") {
      llvm::StringRef behavior = step.text("behavior", "Isolated");
      if (behavior != "Isolated" && behavior != "Contiguous")
        return unknown(type, behavior);
      return cutAround(kPunctuation, isPunctuationLetter, behavior == "Isolated");
    }
    if (pipeline.byteLevel)
      return unknown(type, "behind ByteLevel");
    if (type == "ByteLevel")
      return byteLevel(step);
    if (type == "Metaspace")
      return metaspace(step);
    if (type == "BertPreTokenizer" && pipeline.patterns.empty()) {
      pipeline.bertWords = true;
      return llvm::Error::success();
    }
    if (type == "WhitespaceSplit" && pipeline.patterns.empty() && !escapes)
      return splitWords();
    return unknown(type);
  }

  // Whether the letter that stands for a byte is a digit, or punctuation. Those of
  // bytes that are no printable characters of Latin-1 are neither.
  static bool isDigitLetter(uint8_t byte) {
    return llvm::isDigit(byte) || byte == 0xb2 || byte == 0xb3 || byte == 0xb9 ||
           (byte >= 0xbc && byte <= 0xbe);
  }
  static bool isPunctuationLetter(uint8_t byte) {
    return (byte < 0x80 && llvm::isPunct(char(byte))) ||
           llvm::is_contained({0xa1, 0xa7, 0xab, 0xb6, 0xb7, 0xbb, 0xbf}, int(byte));
  }

  // Cuts each character of `set`, or each run of them, off. What stands behind
  // ByteLevel sees letters that stand for bytes: it cuts between these, even inside
  // of characters.
  llvm::Error cutAround(llvm::StringRef set, bool (*isOf)(uint8_t), bool each) {
    if (!pipeline.byteLevel) {
      pipeline.patterns.push_back(set.str() + (each ? "" : "+"));
      return llvm::Error::success();
    }
    std::vector<uint8_t> &cuts = pipeline.byteCuts;
    cuts.resize(65536 / 8);
    for (unsigned pair = 0; pair < 65536; ++pair) {
      bool before = isOf(uint8_t(pair >> 8)), behind = isOf(uint8_t(pair));
      if (each ? before || behind : before != behind)
        cuts[pair / 8] |= 1 << pair % 8;
    }
    return llvm::Error::success();
  }

  // Metaspace behind it puts the spaces back.
  llvm::Error splitWords() {
    push(NormalStepKind::Blanks);
    TokenizerTables tables;
    dropExtraSpaces(tables);
    pipeline.steps.insert(pipeline.steps.end(), tables.steps.begin(), tables.steps.end());
    // A word that begins with one gets no other.
    push(NormalStepKind::Replace, " " + kSpace.str(), kSpace.str());
    words = true;
    return llvm::Error::success();
  }

  llvm::Error byteLevel(JsonFields &step) {
    step.ignore({"trim_offsets"});
    if (words)
      return unknown("ByteLevel", "behind WhitespaceSplit, which drops the white space");
    if (step.flag("add_prefix_space", false)) {
      // Otherwise each piece would get one.
      if (!pipeline.patterns.empty())
        return unknown("ByteLevel", "with add_prefix_space behind other steps");
      pipeline.spacePrefix = pipeline.spacePrefixSkips = true;
    }
    pipeline.byteLevel = true;
    if (step.flag("use_regex", true))
      pipeline.patterns.push_back(toPcre2(kWords));
    return llvm::Error::success();
  }

  llvm::Error split(JsonFields &step) {
    llvm::StringRef behavior = step.text("behavior");
    bool inverted = step.flag("invert", false);
    auto [literal, regex] = patternOf(step);
    // There are no spaces any more to split at.
    if (literal == " " && escapes)
      return llvm::Error::success();
    bool removes = behavior == "Removed" && inverted;
    if (!(behavior == "Isolated" || removes) || (literal.empty() && regex.empty()))
      return unknown("Split", behavior);
    std::optional<std::string> pattern =
        literal.empty() ? fromOniguruma(regex) : escapePattern(literal);
    if (!pattern)
      return unknown("Split", "by the pattern " + quote(regex, 200));
    // Texts are cut at matches of nothing too, which splitting doesn't do.
    if (canMatchNothing(*pattern))
      return unknown("Split", "by a pattern that may match the empty text, " + quote(regex, 200));
    if (pipeline.byteLevel && !isPlainAscii(literal.empty() ? regex : literal))
      return unknown("Split", "behind ByteLevel");
    // Words are cut between bytes last; matches of digits lie on one side of that.
    if (!pipeline.byteCuts.empty() &&
        llvm::any_of(literal.empty() ? regex : literal, llvm::isAlpha))
      return unknown("Split", "by letters behind ByteLevel and another step");
    // Only the matches are kept: the same if there is nothing else.
    if (removes)
      pipeline.covering.push_back(pipeline.patterns.size());
    pipeline.patterns.push_back(std::move(*pattern));
    return llvm::Error::success();
  }

  // Those that can't be read are refused when scanners are made of them.
  static bool canMatchNothing(llvm::StringRef pattern) {
    std::vector<std::string> sets;
    std::optional<PatternNode> tree = parsePattern(pattern, sets);
    return tree && tree->canBeEmpty();
  }

  // Whether a pattern is of letters and digits, which stand for themselves among
  // the letters for bytes too.
  static bool isPlainAscii(llvm::StringRef pattern) {
    return llvm::all_of(pattern, [](char c) {
      return llvm::isAlnum(c) || llvm::StringRef("[]-{},+?*").contains(c);
    });
  }

  llvm::Error metaspace(JsonFields &step) {
    llvm::StringRef replacement = step.text("replacement");
    // As older files put it, too.
    bool prefix = step.flag("add_prefix_space", true);
    llvm::StringRef scheme = step.text("prepend_scheme", prefix ? "always" : "never");
    step.ignore({"str_rep"});
    pipeline.splitSpaces = step.flag("split", true);
    if (replacement != kSpace)
      return unknown("Metaspace", "with another character");
    if ((scheme != "always" && scheme != "first" && scheme != "never") ||
        (words && scheme != "always"))
      return unknown("Metaspace", scheme);
    // The library puts no prefix before a text whose first characters are gone.
    if (scheme == "first" && llvm::any_of(pipeline.steps, dropsCharacters))
      return unknown("Metaspace", "with a prefix at the start only, behind a step that may drop "
                                  "the first characters of a text");
    bool prepends = llvm::any_of(pipeline.steps, isPrefix);
    if (prepends && scheme != "never")
      return unknown("Metaspace", "with a prefix behind Prepend");
    escapes = pipeline.escapesSpaces = true;
    pipeline.spacePrefix = scheme != "never";
    pipeline.spacePrefixOnce = scheme == "first";
    pipeline.spacePrefixSkips = pipeline.spacePrefix;
    return llvm::Error::success();
  }

  //===--------------------------------------------------------------------===//
  // Post-processor
  //===--------------------------------------------------------------------===//

  llvm::Error postProcess(JsonFields &step, llvm::StringRef type) {
    step.ignore({"trim_offsets", "add_prefix_space", "use_regex"});
    if (type == "ByteLevel")
      return llvm::Error::success();
    if (type == "BertProcessing" || type == "RobertaProcessing") {
      if (!readPair(step.value("cls"), pipeline.before) ||
          !readPair(step.value("sep"), pipeline.after))
        return unknown(type, "whose 'cls' or 'sep' is no pair of text and id");
      return llvm::Error::success();
    }
    if (type != "TemplateProcessing")
      return unknown(type);
    step.ignore({"pair"});
    const Json *specials = step.value("special_tokens"), *single = step.value("single");
    bool behind = false;
    for (const Json &part : single ? single->items() : llvm::ArrayRef<Json>()) {
      if (const Json *text = part.find("Sequence")) {
        const Json *name = text->find("id");
        if (name && name->asString() != "A")
          return unknown(type, "with a second text");
        if (behind)
          return unknown(type, "with the text twice");
        behind = true;
      }
      const Json *special = part.find("SpecialToken");
      if (!special)
        continue;
      SurroundingToken &place = behind ? pipeline.after : pipeline.before;
      if (!place.text.empty())
        return unknown(type, "with two tokens on one side");
      const Json *name = special->find("id");
      place.text = name ? name->asString().value_or("").str() : "";
      const Json *token = specials ? specials->find(place.text) : nullptr;
      const Json *ids = token ? token->find("ids") : nullptr;
      if (ids && ids->items().size() != 1)
        return unknown(type, "whose token " + quote(place.text) + " is not one id");
      place.id = ids ? ids->items()[0].asUInt() : std::nullopt;
    }
    return behind ? llvm::Error::success() : unknown(type, "without the text");
  }

  static bool readPair(const Json *pair, SurroundingToken &token) {
    auto items = pair ? pair->items() : llvm::ArrayRef<Json>();
    if (items.size() != 2 || !items[0].asString() || !items[1].asUInt())
      return false;
    token = {items[0].asString()->str(), items[1].asUInt()};
    return true;
  }

  //===--------------------------------------------------------------------===//
  // Decoder
  //===--------------------------------------------------------------------===//

  // Detokenizing is the inverse of what was read above; other steps are refused.
  llvm::Error decode(JsonFields &step, llvm::StringRef type) {
    step.ignore({"trim_offsets", "add_prefix_space", "use_regex", "prepend_scheme", "split",
                 "str_rep", "cleanup", "prefix"});
    if (type == "Metaspace" && step.text("replacement") != kSpace)
      return unknown(type, "with another character");
    if (type == "Replace") {
      auto [literal, regex] = patternOf(step);
      if (literal != kSpace || step.text("content") != " ")
        return unknown(type, "of other texts than U+2581 by a space");
    }
    if (type == "Strip" && (step.text("content") != " " || step.number("start").value_or(0) > 1 ||
                            step.number("stop").value_or(0) != 0))
      return unknown(type, "of more than the first space");
    for (llvm::StringRef known :
         {"ByteLevel", "ByteFallback", "Fuse", "Replace", "Strip", "Metaspace", "WordPiece"})
      if (type == known)
        return llvm::Error::success();
    return unknown(type);
  }

  const ModelSource &source;
  const Json &root;
  JsonPipeline pipeline;
  // There are no spaces in the text any more; it was cut at white space.
  bool escapes = false, words = false;
  llvm::StringRef current;
};

} // namespace

llvm::Expected<JsonPipeline> izhc::readPipeline(const ModelSource &source, const Json &root) {
  return PipelineReader(source, root).run();
}
