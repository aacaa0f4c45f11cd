// Encodes with the runtime's own code, from the section that compile writes.

#include "tools/izhc/TokenizerCheck.h"

#include "compiler/import/ModelSource.h"
#include "compiler/support/Error.h"
#include "compiler/support/MappedFile.h"
#include "compiler/tokenizers/TokenizerTables.h"
#include "compiler/tokenizers/Tokenizers.h"
#include "runtime/text/tokenizer.h"
#include "tools/izhc/ChangedText.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <algorithm>

using namespace izhc;

namespace {

using Ids = std::vector<int32_t>;

// What tokenizers of one model are known to differ in, in short: spaces, case,
// digits, scripts without spaces, bytes, marks, and what looks like a token.
constexpr llvm::StringLiteral kAwkward[] = {
    "",
    " ",
    "a",
    " a",
    "a ",
    "Hello world",
    "  two  spaces   three ",
    "\n",
    "line\n\nline\n",
    "\ttab\t",
    "don't WON'T they'll",
    "3.14159 1000000 0x1F",
    "a,b;c:d!e?f(g)[h]{i}",
    "snake_case CamelCase kebab-case",
    "ÄÖÜ äöü ß É ñ",
    "Привет мир",
    "漢字とかな",
    "한국어",
    "שלום",
    "हिन्दी",
    "🙂👍🏽",
    "\x7f\x01",
    "<s> </s> <unk>",
    "http://a.b/c?d=e&f=%20",
    "if (x == 0) { return; }",
};

// What is no text, or comes in long runs, beside those.
std::vector<std::string> sampleTexts() {
  std::vector<std::string> texts(std::begin(kAwkward), std::end(kAwkward));
  for (llvm::StringRef text :
       {"\xff\xc3(\xed\xa0\x80\xf0\x9f",
        "\u0e20\u0e32\u0e29\u0e32\u0e44\u0e17\u0e22 \u10e5\u10d0\u10e0\u10d7\u10e3\u10da\u10d8 "
        "\u1112\u1161\u11ab",
        "\U0001f469\u200d\U0001f680 \U0001f1e9\U0001f1ea \U0001d400\U00020000\U000e0041",
        "\u2581\u2581a \ufeff\ufffd\u00ad", "\r\n\u0085\u00a0\u2003\u2028\u3000|",
        "\u0130\u00df\u1e9e\u01c5\ufb01\ufdfa\u2460\u212b"})
    texts.push_back(text.str());
  std::string every;
  for (int byte = 0; byte < 256; ++byte)
    every += char(byte);
  texts.push_back(every.substr(0, 128));
  texts.push_back(every);
  for (llvm::StringRef one :
       {"7", " ", "\n", " \t", "a", "\u0301", "\u0316\u0301", "\u6f22", "\U0001f642", "<", "."}) {
    std::string run;
    for (int i = 0; i < 1000; ++i)
      run += one;
    texts.push_back(run);
    texts.push_back("a" + run + "b");
  }
  // Long enough for what only pays in long texts.
  std::string all;
  while (all.size() < 1 << 15)
    for (size_t i = 0, count = texts.size(); i < count; ++i)
      all += texts[i] + (i % 2 ? " " : "");
  texts.push_back(all);
  return texts;
}

class Encoder {
public:
  ~Encoder() { izh::Tokenizer::destroy(tokenizer); }

  llvm::Error create(llvm::StringRef name, const std::vector<uint8_t> &bytes) {
    section.resize((bytes.size() + 7) / 8);
    memcpy(section.data(), bytes.data(), bytes.size());
    izh_error error = {};
    if (izh::Tokenizer::create(section.data(), bytes.size(), &tokenizer, &error) != IZH_OK)
      return makeError("{0}: the runtime can't use the tokenizer that was made of it: {1}", name,
                       error.message);
    return llvm::Error::success();
  }

  llvm::Expected<Ids> encode(llvm::StringRef text) const {
    izh::Array<int32_t> ids;
    izh_error error = {};
    if (tokenizer->encode(text.data(), text.size(), {false, false}, &ids, &error) != IZH_OK)
      return makeError("{0}", error.message);
    return Ids(ids.begin(), ids.end());
  }

  std::string decode(const Ids &ids) const {
    izh::Array<char> text;
    if (!tokenizer->decode(ids.data(), ids.size(), true, &text))
      return "";
    return {text.begin(), text.end()};
  }

  // Whether the text must come back from its ids. Steps before the tokenizer
  // change texts, U+2581 is taken for a space, and spaces are added and dropped
  // around tokens that are cut out and at the start.
  bool mustGiveBack(llvm::StringRef text) const {
    const izh::TokenizerView &view = tokenizer->view();
    bool bytes = view.kind == izh::TokenizerKind::kByteBpe;
    if (view.kind == izh::TokenizerKind::kWordPiece || view.step_count > 0 ||
        !view.specials.strips.empty() || !view.changed_specials.ids.empty() ||
        llvm::is_contained(view.byte_tokens, -1))
      return false;
    if (view.add_space_prefix && (bytes || text.starts_with(" ") || cutsOut()))
      return false;
    auto *begin = reinterpret_cast<const llvm::UTF8 *>(text.data());
    return llvm::isLegalUTF8String(&begin, begin + text.size()) &&
           (bytes || !text.contains("\u2581"));
  }

private:
  // Whether there are tokens that are cut out of every text.
  bool cutsOut() const {
    const izh::TokenizerView &view = tokenizer->view();
    return llvm::any_of(view.specials.ids, [&](uint32_t id) {
      return view.token_type(id) == izh::TokenType::kUserDefined;
    });
  }

  std::vector<uint64_t> section;
  izh::Tokenizer *tokenizer = nullptr;
};

std::string listOf(const Ids &ids) {
  std::string text = "[";
  for (int32_t id : ids)
    text += (text.size() > 1 ? ", " : "") + std::to_string(id);
  return text + "]";
}

// A few of the ids around the first that differs from `other`'s, with their place.
std::string listAround(const Ids &ids, const Ids &other) {
  constexpr size_t kBefore = 4, kShown = 12;
  if (ids.size() <= kShown)
    return listOf(ids);
  size_t same =
      size_t(std::mismatch(ids.begin(), ids.end(), other.begin(), other.end()).first - ids.begin());
  size_t begin = std::min(same - std::min(same, kBefore), ids.size() - kShown);
  return listOf(Ids(ids.begin() + begin, ids.begin() + begin + kShown)) + " from place " +
         std::to_string(begin) + " on of " + std::to_string(ids.size());
}

// Where the vectors of a model may be, without the extension.
std::vector<std::string> placesOfVectors(llvm::StringRef model) {
  llvm::SmallString<256> path(model);
  if (llvm::sys::fs::is_directory(path)) {
    llvm::sys::path::append(path, "tokenizer");
    return {path.str().str()};
  }
  llvm::sys::path::replace_extension(path, "");
  if (path.str() == model)
    return {model.str()};
  return {path.str().str(), model.str()};
}

// Returns the number of texts.
llvm::Expected<unsigned> checkVectors(const Encoder &encoder, const std::string &stem) {
  if (!llvm::sys::fs::exists(stem + ".out"))
    return makeError("there is {0}.inp with texts to check the model's tokenizer, but no {0}.out "
                     "with their ids; put it beside the model, or take the other away",
                     stem);
  auto texts = MappedFile::open(stem + ".inp");
  if (!texts)
    return texts.takeError();
  auto lines = MappedFile::open(stem + ".out");
  if (!lines)
    return lines.takeError();
  llvm::StringRef textsLeft = llvm::toStringRef((*texts)->bytes());
  llvm::StringRef linesLeft = llvm::toStringRef((*lines)->bytes());
  if (textsLeft.empty())
    return makeError("{0}.inp has no texts to check the model's tokenizer with; write some, or "
                     "take {0}.inp and {0}.out away",
                     stem);
  if (textsLeft.contains("\r\n__ggml_vocab_test__"))
    return makeError("{0}.inp: lines end with a carriage return and a line feed, expected a line "
                     "feed alone; texts would end with carriage returns that their ids lack",
                     stem);
  unsigned number = 1;
  for (; !textsLeft.empty() && !linesLeft.empty(); ++number) {
    auto [text, textsAfter] = textsLeft.split("\n__ggml_vocab_test__\n");
    auto [line, linesAfter] = linesLeft.split('\n');
    textsLeft = textsAfter;
    linesLeft = linesAfter;
    Ids expected;
    llvm::SmallVector<llvm::StringRef> words;
    line.rtrim('\r').split(words, ' ', -1, /*KeepEmpty=*/false);
    for (llvm::StringRef word : words)
      if (word.trim().getAsInteger(10, expected.emplace_back()))
        return makeError("{0}.out: line {1} has {2}, expected ids", stem, number, quote(word));
    auto found = encoder.encode(text);
    if (!found)
      return found.takeError();
    if (*found != expected)
      return makeError("{0}.out: text {1} of {0}.inp has the ids {2}, but the model's tokenizer "
                       "gives {3}; it would see other text than the one written, so it is not "
                       "compiled",
                       stem, number, listAround(expected, *found), listAround(*found, expected));
  }
  if (!textsLeft.empty() || !linesLeft.empty())
    return makeError("{0}.inp and {0}.out have not the same number of texts", stem);
  return number - 1;
}

llvm::Error checkSamples(llvm::StringRef model, const Encoder &encoder) {
  for (const std::string &text : sampleTexts()) {
    auto ids = encoder.encode(text);
    if (!ids)
      return makeError("{0}: its tokenizer can't encode {1}: {2}", model, quote(text),
                       llvm::toString(ids.takeError()));
    if (!encoder.mustGiveBack(text))
      continue;
    std::string back = encoder.decode(*ids);
    if (back == text)
      continue;
    size_t same = size_t(std::mismatch(back.begin(), back.end(), text.begin(), text.end()).first -
                         back.begin());
    return makeError(
        "{0}: its tokenizer makes ids of {1} that stand for {2}: they differ from byte "
        "{3} on, so tokens of its vocabulary contradict each other",
        model, quote(text), quote(back), same);
  }
  return llvm::Error::success();
}

llvm::Error checkAgreement(llvm::StringRef model, const Encoder &json, const Encoder &pieces) {
  for (llvm::StringRef text : kAwkward) {
    auto one = json.encode(text), other = pieces.encode(text);
    if (!one || !other)
      return llvm::joinErrors(one.takeError(), other.takeError());
    if (*one != *other)
      return makeError("{0}: for {1} tokenizer.json gives {2} and tokenizer.model {3}; one of them "
                       "is not the model's: take that one out of the folder",
                       model, quote(text), listOf(*one), listOf(*other));
  }
  return llvm::Error::success();
}

} // namespace

llvm::Expected<tool::CheckedTokenizer> tool::makeCheckedTokenizer(const std::string &model,
                                                                  llvm::StringRef preTokenizer) {
  auto source = openModel(model);
  if (!source)
    return source.takeError();
  auto section = buildTokenizer(**source, changeText, preTokenizer);
  if (!section)
    return section.takeError();
  CheckedTokenizer checked;
  checked.section = std::move(*section);
  if (checked.section.empty())
    return checked;
  Encoder encoder;
  if (llvm::Error error = encoder.create(model, checked.section))
    return std::move(error);
  if (llvm::Error error = checkSamples(model, encoder))
    return std::move(error);
  for (const std::string &stem : placesOfVectors(model)) {
    // A link that leads nowhere is there: reading says so.
    llvm::sys::fs::file_status status;
    llvm::sys::fs::status(stem + ".inp", status, /*follow=*/false);
    if (status.type() == llvm::sys::fs::file_type::file_not_found)
      continue;
    llvm::Expected<unsigned> texts = checkVectors(encoder, stem);
    if (!texts)
      return texts.takeError();
    checked.vectors.push_back(stem + ".inp");
    checked.texts += *texts;
  }
  auto pieces = (*source)->companion("tokenizer.model");
  if (!pieces || !(*source)->companion("tokenizer.json"))
    return checked;
  // Files of other kinds have that name too.
  auto second = buildFromPieces(**source, *pieces);
  if (!second) {
    llvm::consumeError(second.takeError());
    return checked;
  }
  Encoder other;
  if (llvm::Error error = other.create(model, *second))
    return std::move(error);
  if (llvm::Error error = checkAgreement(model, encoder, other))
    return std::move(error);
  return checked;
}
