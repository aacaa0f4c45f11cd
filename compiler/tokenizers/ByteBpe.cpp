// Byte-level BPE: tokens become the bytes they stand for, merges become triples
// of ids, and the pre-tokenizer's name becomes its patterns.

#include "compiler/support/Error.h"
#include "compiler/tokenizers/ByteAlphabet.h"
#include "compiler/tokenizers/PreTokenizer.h"
#include "compiler/tokenizers/SlotTable.h"
#include "compiler/tokenizers/TokenizerTables.h"
#include "compiler/tokenizers/Tokenizers.h"
#include "runtime/schema/tokenizer_hash.h"

using namespace izhc;
using izh::schema::TokenType;

namespace {

llvm::Expected<const PreTokenizer *> choosePreTokenizer(const ModelSource &source,
                                                        llvm::StringRef override) {
  llvm::StringRef name = override;
  if (name.empty()) {
    auto value = source.getString("tokenizer.ggml.pre");
    if (!value)
      return value.takeError();
    if (!*value || (*value)->empty())
      return makeError("{0}: the file names no pre-tokenizer (tokenizer.ggml.pre), and "
                       "guessing would give wrong tokens: name it with --pre-tokenizer, one "
                       "of {1}",
                       source.fileName(), preTokenizerNames());
    name = **value;
  }
  if (const PreTokenizer *found = findPreTokenizer(name))
    return found;
  return makeError("{0}: the pre-tokenizer {1} is unknown: if it splits text like a known "
                   "one, name that with --pre-tokenizer, one of {2}",
                   source.fileName(), quote(name), preTokenizerNames());
}

} // namespace

// Tokens that a text is searched for are read as they are; all others are
// written in the byte alphabet. What isn't can't come from a text, and is
// printed as it is.
void izhc::fillByteTexts(const Vocabulary &v, TokenizerTables &tables,
                         std::vector<uint32_t> &words) {
  tables.texts.resize(v.size());
  for (uint32_t id = 0; id < v.size(); ++id) {
    auto type = TokenType(v.types[id]);
    bool verbatim =
        type == TokenType::Control || type == TokenType::UserDefined || type == TokenType::Unknown;
    std::optional<std::string> bytes = decodeByteText(v.texts[id]);
    bool same = bytes && *bytes == v.texts[id];
    tables.texts[id] = bytes && !verbatim ? *bytes : v.texts[id].str();
    if (bytes && (!verbatim || same) && v.findPiece(v.texts[id]) == int32_t(id))
      words.push_back(id);
  }
}

llvm::Error izhc::readMerges(const ModelSource &source, const Vocabulary &v,
                             TokenizerTables &tables) {
  constexpr llvm::StringLiteral key("tokenizer.ggml.merges");
  auto texts = source.requireStringArray(key);
  if (!texts)
    return texts.takeError();
  std::vector<MergeText> merges;
  merges.reserve(texts->size());
  for (llvm::StringRef merge : *texts) {
    // The first part is never empty, but it may start with a space.
    size_t space = merge.find(' ', 1);
    if (space == llvm::StringRef::npos || space + 1 == merge.size())
      return makeError("{0}: merge {1} is {2}, expected two parts separated by a space",
                       source.fileName(), merges.size(), quote(merge));
    merges.emplace_back(merge.take_front(space), merge.drop_front(space + 1));
  }
  return addMerges(source, key, v, merges, tables);
}

llvm::Error izhc::addMerges(const ModelSource &source, llvm::StringRef name, const Vocabulary &v,
                            llvm::ArrayRef<MergeText> texts, TokenizerTables &tables) {
  if (texts.size() >= izh::schema::kSlotValue)
    return makeError("{0}: {1} has {2} entries, expected fewer than {3}", source.fileName(), name,
                     texts.size(), izh::schema::kSlotValue);
  std::vector<SlotEntry> entries;
  llvm::DenseMap<std::pair<uint32_t, uint32_t>, uint32_t> seen;
  tables.merges.reserve(texts.size());
  entries.reserve(texts.size());
  seen.reserve(unsigned(texts.size()));
  std::string joined;
  for (uint32_t rank = 0; rank < texts.size(); ++rank) {
    auto [left, right] = texts[rank];
    joined = (left + right).str();
    int32_t ids[3] = {v.find(left), v.find(right), v.find(joined)};
    const llvm::StringRef parts[3] = {left, right, joined};
    for (int i = 0; i < 3; ++i)
      if (ids[i] < 0)
        return makeError("{0}: merge {1} of {2} is {3} and {4}, but {5} is no token of the "
                         "vocabulary",
                         source.fileName(), rank, name, quote(left), quote(right), quote(parts[i]));
    tables.merges.emplace_back(ids[0], ids[1], ids[2]);
    // The first of equal pairs has the lowest rank.
    if (seen.try_emplace({uint32_t(ids[0]), uint32_t(ids[1])}, rank).second)
      entries.push_back({izh::schema::hash_pair(ids[0], ids[1]), rank});
  }
  tables.mergeSlots = buildSlots(entries);
  if (tables.mergeSlots.empty() && !entries.empty())
    return makeError("{0}: no table can hold the {1} merges: their ids were made to collide",
                     source.fileName(), entries.size());
  return llvm::Error::success();
}

std::string izhc::preTokenizerNames() {
  std::string names;
  for (const PreTokenizer &entry : preTokenizers())
    for (const char *name : entry.names)
      names += (names.empty() ? "" : ", ") + std::string(name);
  return names;
}

llvm::Expected<TokenizerTables> izhc::buildByteBpe(const ModelSource &source, Vocabulary &v,
                                                   llvm::StringRef preTokenizer) {
  auto chosen = choosePreTokenizer(source, preTokenizer);
  if (!chosen)
    return chosen.takeError();
  TokenizerTables tables;
  tables.kind = izh::schema::TokenizerKind::ByteBpe;
  std::vector<uint32_t> words;
  fillByteTexts(v, tables, words);
  fillByteTokens(v, /*alphabet=*/true, tables);
  if (llvm::Error error = readMerges(source, v, tables))
    return std::move(error);
  if ((*chosen)->wholeWords) {
    auto slots = buildTokenSlots(source, tables.texts, words);
    if (!slots)
      return slots.takeError();
    tables.tokenSlots = std::move(*slots);
  }
  for (const char *pattern : (*chosen)->patterns)
    tables.patterns.push_back(toPcre2(pattern));
  tables.wholeWords = (*chosen)->wholeWords;
  tables.addBos = v.addBos.value_or((*chosen)->addBos);
  tables.addEos = v.addEos.value_or(false);
  return std::move(tables);
}
