// WordPiece vocabularies, as BERT's: words between spaces and around
// punctuation, cut into the longest tokens.

#include "compiler/support/Error.h"
#include "compiler/tokenizers/PreTokenizer.h"
#include "compiler/tokenizers/TokenizerTables.h"
#include "runtime/schema/tokenizer_limits.h"

using namespace izhc;
using izh::schema::NormalStepKind;
using izh::schema::TokenType;

// Punctuation stands alone; all of ASCII's symbols count as such.
static constexpr char kWordsAndPunctuation[] =
    R"([\p{P}\x{21}-\x{2f}\x{3a}-\x{40}\x{5b}-\x{60}\x{7b}-\x{7e}])"
    R"(|[^\s\p{P}\x{21}-\x{2f}\x{3a}-\x{40}\x{5b}-\x{60}\x{7b}-\x{7e}]+)";

void izhc::addBertSteps(const BertRules &rules, TokenizerTables &tables) {
  auto add = [&](bool wanted, NormalStepKind kind) {
    if (wanted)
      tables.steps.push_back({kind, "", ""});
  };
  add(rules.clean, NormalStepKind::Clean);
  add(rules.spaceIdeographs, NormalStepKind::SpaceIdeographs);
  add(rules.stripAccents, NormalStepKind::Decompose);
  add(rules.stripAccents, NormalStepKind::StripNonspacing);
  add(rules.lowercase, NormalStepKind::Lowercase);
}

llvm::Error izhc::fillWordPiece(const ModelSource &source, const Vocabulary &v, WordParts parts,
                                TokenizerTables &tables) {
  tables.kind = izh::schema::TokenizerKind::WordPiece;
  tables.patterns = {toPcre2(kWordsAndPunctuation)};
  tables.byteMarks = true;
  // Text comes back with the spaces that the tokens begin with but the first.
  tables.addSpacePrefix = true;
  tables.byteTokens.assign(256, -1);
  auto trie = buildTokenTrie(source, {parts.begin(), parts.end()});
  if (!trie)
    return trie.takeError();
  tables.pieces = std::move(*trie);
  if (v.unk < 0)
    return makeError("{0}: there is no token for unknown words", source.fileName());
  return llvm::Error::success();
}

// In these files U+2581 is before what begins a word.
static llvm::Error fillMarkedWords(const ModelSource &source, const Vocabulary &v,
                                   TokenizerTables &tables) {
  WordParts parts;
  for (uint32_t id = 0; id < v.size(); ++id) {
    llvm::StringRef text = v.texts[id];
    bool normal = TokenType(v.types[id]) == TokenType::Normal;
    bool begins = normal && text.consume_front("\xe2\x96\x81");
    tables.texts.push_back((begins ? " " : "") + text.str());
    if (normal && v.find(v.texts[id]) == int32_t(id))
      parts.emplace_back((begins ? std::string(1, izh::schema::kWordMark) : "") + text.str(), id);
  }
  return fillWordPiece(source, v, std::move(parts), tables);
}

llvm::Expected<TokenizerTables> izhc::buildWordPiece(const ModelSource &source, Vocabulary &v,
                                                     llvm::StringRef preTokenizer) {
  if (!preTokenizer.empty())
    return makeError("{0}: --pre-tokenizer={1} has no meaning here: the tokenizer has its own "
                     "words; leave the flag out",
                     source.fileName(), preTokenizer);
  BertRules rules;
  auto lowercase = source.getBool("tokenizer.ggml.normalizer.lowercase");
  if (!lowercase)
    return lowercase.takeError();
  rules.lowercase = lowercase->value_or(true);
  auto accents = source.getBool("tokenizer.ggml.normalizer.strip_accents");
  if (!accents)
    return accents.takeError();
  rules.stripAccents = accents->value_or(rules.lowercase);
  TokenizerTables tables;
  addBertSteps(rules, tables);
  // Ids of the original vocabulary, where files leave them out.
  auto standard = [&](int32_t &id, llvm::StringRef text) {
    if (id < 0)
      id = v.find(text);
  };
  standard(v.unk, "[UNK]");
  standard(v.bos, "[CLS]");
  standard(v.pad, "[PAD]");
  // What stands behind a text is called a separator. (The key is spelled so.)
  auto separator = source.getUInt("tokenizer.ggml.seperator_token_id");
  if (!separator)
    return separator.takeError();
  if (*separator && **separator >= v.size())
    return makeError("{0}: tokenizer.ggml.seperator_token_id is {1}, but the last token is {2}",
                     source.fileName(), **separator, v.size() - 1);
  v.eos = *separator ? int32_t(**separator) : v.eos;
  standard(v.eos, "[SEP]");
  if (llvm::Error error = fillMarkedWords(source, v, tables))
    return std::move(error);
  tables.addBos = v.addBos.value_or(true);
  tables.addEos = v.addEos.value_or(true);
  return std::move(tables);
}
