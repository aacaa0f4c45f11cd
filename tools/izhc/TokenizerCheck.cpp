// Encodes with the runtime's own code, from the section that compile writes.

#include "tools/izhc/TokenizerCheck.h"

#include "compiler/import/ModelSource.h"
#include "compiler/support/Error.h"
#include "compiler/tokenizers/TokenizerTables.h"
#include "compiler/tokenizers/Tokenizers.h"
#include "runtime/text/tokenizer.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

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

class Encoder {
public:
  ~Encoder() { izh::Tokenizer::destroy(tokenizer); }

  llvm::Error create(llvm::StringRef name, const std::vector<uint8_t> &bytes) {
    section.resize((bytes.size() + 7) / 8);
    memcpy(section.data(), bytes.data(), bytes.size());
    izh_error error = {};
    if (izh::Tokenizer::create(section.data(), bytes.size(), &tokenizer, &error) != IZH_OK)
      return makeError("{0}: {1}", name, error.message);
    return llvm::Error::success();
  }

  llvm::Expected<Ids> encode(llvm::StringRef text) const {
    izh::Array<int32_t> ids;
    izh_error error = {};
    if (tokenizer->encode(text.data(), text.size(), {false, false}, &ids, &error) != IZH_OK)
      return makeError("{0}", error.message);
    return Ids(ids.begin(), ids.end());
  }

private:
  std::vector<uint64_t> section;
  izh::Tokenizer *tokenizer = nullptr;
};

std::string listOf(const Ids &ids) {
  std::string text = "[";
  for (int32_t id : ids)
    text += (text.size() > 1 ? ", " : "") + std::to_string(id);
  return text + "]";
}

// Where the vectors of a model are, without the extension.
std::string vectorsOf(llvm::StringRef model) {
  llvm::SmallString<256> path(model);
  if (llvm::sys::fs::is_directory(path))
    llvm::sys::path::append(path, "tokenizer");
  else
    llvm::sys::path::replace_extension(path, "");
  return path.str().str();
}

llvm::Error checkVectors(const Encoder &encoder, const std::string &stem) {
  auto texts = llvm::MemoryBuffer::getFile(stem + ".inp", false, false);
  auto lines = llvm::MemoryBuffer::getFile(stem + ".out", false, false);
  for (auto [file, ending] : {std::pair(&texts, ".inp"), std::pair(&lines, ".out")})
    if (!*file)
      return makeError("cannot read '{0}{1}': {2}", stem, ending, file->getError().message());
  llvm::StringRef textsLeft = (*texts)->getBuffer(), linesLeft = (*lines)->getBuffer();
  for (unsigned number = 1; !textsLeft.empty() && !linesLeft.empty(); ++number) {
    auto [text, textsAfter] = textsLeft.split("\n__ggml_vocab_test__\n");
    auto [line, linesAfter] = linesLeft.split('\n');
    textsLeft = textsAfter;
    linesLeft = linesAfter;
    Ids expected;
    llvm::SmallVector<llvm::StringRef> words;
    line.split(words, ' ', -1, /*KeepEmpty=*/false);
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
                       stem, number, listOf(expected), listOf(*found));
  }
  if (!textsLeft.empty() || !linesLeft.empty())
    return makeError("{0}.inp and {0}.out have not the same number of texts", stem);
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

llvm::Error tool::checkTokenizer(const std::string &model, llvm::StringRef preTokenizer) {
  std::string stem = vectorsOf(model);
  bool vectors = llvm::sys::fs::exists(stem + ".inp") && llvm::sys::fs::exists(stem + ".out");
  auto source = openModel(model);
  if (!source)
    return source.takeError();
  auto pieces = (*source)->companion("tokenizer.model");
  bool both = pieces && (*source)->companion("tokenizer.json");
  if (!vectors && !both)
    return llvm::Error::success();
  auto section = buildTokenizer(**source, preTokenizer);
  if (!section)
    return section.takeError();
  if (section->empty())
    return llvm::Error::success();
  Encoder encoder;
  if (llvm::Error error = encoder.create(model, *section))
    return error;
  if (vectors)
    if (llvm::Error error = checkVectors(encoder, stem))
      return error;
  if (!both)
    return llvm::Error::success();
  // Files of other kinds have that name too.
  auto second = buildFromPieces(**source, *pieces);
  if (!second) {
    llvm::consumeError(second.takeError());
    return llvm::Error::success();
  }
  Encoder other;
  if (llvm::Error error = other.create(model, *second))
    return error;
  return checkAgreement(model, encoder, other);
}
