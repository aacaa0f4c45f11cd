// SentencePiece-style BPE: tokens are looked up by text and merged by score, and
// characters without a token fall back to byte tokens.

#include "compiler/support/Error.h"
#include "compiler/tokenizers/ByteAlphabet.h"
#include "compiler/tokenizers/TokenizerTables.h"
#include "runtime/schema/tokenizer_hash.h"

using namespace izhc;
using izh::schema::TokenType;

namespace {

constexpr llvm::StringLiteral kSpace("\xe2\x96\x81");

} // namespace

std::string izhc::byteTokenText(unsigned byte) {
  static const char digits[] = "0123456789ABCDEF";
  return {'<', '0', 'x', digits[byte >> 4], digits[byte & 15], '>'};
}

// True if merges never reach from one character into a space after it, so that
// words can be merged one by one.
bool izhc::spacesOnlyLead(llvm::StringRef text) {
  while (text.consume_front(kSpace))
    ;
  return !text.contains(kSpace);
}

void izhc::addJoins(llvm::StringRef text, TokenizerTables &tables) {
  tables.joins.resize((65536 + 256) / 8);
  auto set = [&](unsigned bit) { tables.joins[bit / 8] |= uint8_t(1 << bit % 8); };
  for (size_t i = 1; i < text.size(); ++i) {
    auto left = uint8_t(text[i - 1]);
    set(left * 256u + uint8_t(text[i]));
    if (text.substr(i).starts_with(kSpace))
      set(65536 + left);
  }
}

void izhc::fillByteTokens(const Vocabulary &v, bool alphabet, TokenizerTables &tables) {
  for (unsigned byte = 0; byte < 256; ++byte) {
    char raw = char(byte);
    int32_t id = v.findPiece(alphabet ? byteCharacter(uint8_t(byte)) : byteTokenText(byte));
    if (id < 0 && !alphabet)
      id = v.findPiece(llvm::StringRef(&raw, 1));
    tables.byteTokens.push_back(id);
  }
}

llvm::Expected<TokenizerTables> izhc::buildScoreBpe(const ModelSource &source, Vocabulary &v,
                                                    llvm::StringRef preTokenizer) {
  if (!preTokenizer.empty())
    return makeError("{0}: --pre-tokenizer={1} has no meaning here: the tokenizer merges by "
                     "score and splits no words; leave the flag out",
                     source.fileName(), preTokenizer);
  if (v.scores.empty())
    return makeError("{0}: there is no tokenizer.ggml.scores, but this tokenizer merges by "
                     "score",
                     source.fileName());
  TokenizerTables tables;
  tables.kind = izh::schema::TokenizerKind::ScoreBpe;
  tables.wordsAtSpaces = true;
  std::vector<uint32_t> ids;
  for (uint32_t id = 0; id < v.size(); ++id) {
    llvm::StringRef text = v.texts[id];
    tables.texts.push_back(text.str());
    if (v.find(text) == int32_t(id)) {
      ids.push_back(id);
      tables.wordsAtSpaces &= spacesOnlyLead(text);
      addJoins(text, tables);
    }
    if (TokenType(v.types[id]) == TokenType::Byte) {
      unsigned byte;
      if (text.size() != 6 || !text.starts_with("<0x") || !text.ends_with(">") ||
          text.substr(3, 2).getAsInteger(16, byte))
        return makeError("{0}: token {1} is a byte token but its text is {2}, expected <0x00> "
                         "to <0xFF>",
                         source.fileName(), id, quote(text));
    }
  }
  fillByteTokens(v, /*alphabet=*/false, tables);
  auto slots = buildTokenSlots(source, tables.texts, ids);
  if (!slots)
    return slots.takeError();
  tables.tokenSlots = std::move(*slots);
  // What files of this kind leave out is fixed by the original tokenizer.
  int32_t *defaults[] = {&v.unk, &v.bos, &v.eos};
  for (int32_t id = 0; id < 3; ++id)
    if (*defaults[id] < 0 && size_t(id) < v.size())
      *defaults[id] = id;
  tables.addBos = v.addBos.value_or(true);
  tables.addEos = v.addEos.value_or(false);
  tables.addSpacePrefix = v.addSpacePrefix.value_or(true);
  return std::move(tables);
}

llvm::Error izhc::fillCharacters(const ModelSource &source, Vocabulary &v, bool fallback,
                                 TokenizerTables &tables) {
  tables.kind = izh::schema::TokenizerKind::ScoreBpe;
  tables.wordsAtSpaces = true;
  addJoins("", tables);
  for (const izh::schema::Merge &merge : tables.merges) {
    tables.wordsAtSpaces &= spacesOnlyLead(v.texts[merge.result()]);
    addJoins(v.texts[merge.result()], tables);
  }
  std::vector<uint32_t> ids;
  for (uint32_t id = 0; id < v.size(); ++id) {
    llvm::StringRef text = v.texts[id];
    tables.texts.push_back(text.str());
    if (v.findPiece(text) == int32_t(id))
      ids.push_back(id);
    unsigned value;
    if (fallback && v.isPiece(id) && text.size() == 6 && text.starts_with("<0x") &&
        text.ends_with(">") && !text.substr(3, 2).getAsInteger(16, value))
      v.types[id] = uint8_t(TokenType::Byte);
  }
  if (fallback)
    fillByteTokens(v, /*alphabet=*/false, tables);
  else
    tables.byteTokens.assign(256, -1);
  // Ranks decide, but the section has a score for each token of this kind.
  v.scores.assign(v.size(), 0);
  auto slots = buildTokenSlots(source, tables.texts, ids);
  if (!slots)
    return slots.takeError();
  tables.tokenSlots = std::move(*slots);
  return llvm::Error::success();
}

llvm::Expected<TokenizerTables> izhc::buildRankBpe(const ModelSource &source, Vocabulary &v,
                                                   llvm::StringRef preTokenizer) {
  if (!preTokenizer.empty())
    return makeError("{0}: --pre-tokenizer={1} has no meaning here: the tokenizer splits no "
                     "words; leave the flag out",
                     source.fileName(), preTokenizer);
  TokenizerTables tables;
  if (llvm::Error error = readMerges(source, v, tables))
    return std::move(error);
  if (llvm::Error error = fillCharacters(source, v, /*fallback=*/true, tables))
    return std::move(error);
  tables.addBos = v.addBos.value_or(true);
  tables.addEos = v.addEos.value_or(false);
  tables.addSpacePrefix = v.addSpacePrefix.value_or(false);
  return std::move(tables);
}
