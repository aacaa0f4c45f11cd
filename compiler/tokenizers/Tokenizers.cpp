// Chooses the kind of tokenizer by tokenizer.ggml.model and writes the
// flatbuffer.

#include "compiler/tokenizers/Tokenizers.h"
#include "compiler/support/Error.h"
#include "compiler/tokenizers/ByteTrie.h"
#include "compiler/tokenizers/PatternScanner.h"
#include "compiler/tokenizers/SlotTable.h"
#include "compiler/tokenizers/TokenizerTables.h"
#include "runtime/schema/byte_trie.h"
#include "runtime/schema/tokenizer_hash.h"
#include "runtime/schema/tokenizer_limits.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ConvertUTF.h"

using namespace izhc;
namespace schema = izh::schema;

namespace {

struct Kind {
  const char *model;
  llvm::Expected<TokenizerTables> (*build)(const ModelSource &, Vocabulary &,
                                           llvm::StringRef preTokenizer);
};

constexpr Kind kKinds[] = {
    {"gpt2", buildByteBpe}, {"llama", buildScoreBpe}, {"gemma4", buildRankBpe},
    {"t5", buildUnigram},   {"bert", buildWordPiece},
};

// Real vocabularies have a few megabytes.
llvm::Error checkSizes(const ModelSource &source, const Vocabulary &v) {
  constexpr uint64_t kMaxTextBytes = 64u << 20;
  uint64_t bytes = 0;
  for (llvm::StringRef text : v.texts)
    bytes += text.size();
  if (bytes > kMaxTextBytes)
    return makeError("{0}: the texts of its tokens have {1} bytes, at most {2} can be used",
                     source.fileName(), bytes, kMaxTextBytes);
  return llvm::Error::success();
}

// The tokens that a text is searched for, and the trie of indices in `ids`.
struct SpecialTables {
  std::vector<uint32_t> ids;
  std::vector<uint64_t> trie;
};

// Tokens that a text is searched for, ordered by their bytes, the lowest id of
// equal ones. They must be UTF-8: cutting them out may not cut characters.
llvm::Expected<std::vector<uint32_t>> findSpecials(const ModelSource &source, const Vocabulary &v,
                                                   const TokenizerTables &tables) {
  std::vector<uint32_t> specials;
  llvm::DenseSet<uint32_t> changed;
  for (const auto &[text, id] : tables.changedSpecials)
    changed.insert(id);
  for (uint32_t id = 0; id < v.size(); ++id) {
    auto type = schema::TokenType(v.types[id]);
    bool special = type == schema::TokenType::Control || type == schema::TokenType::Unknown ||
                   (type == schema::TokenType::UserDefined && !tables.userDefinedInside) ||
                   tables.cutOut.contains(id);
    if (!special || v.find(v.texts[id]) != int32_t(id) || changed.contains(id))
      continue;
    auto *bytes = reinterpret_cast<const llvm::UTF8 *>(v.texts[id].data());
    if (!llvm::isLegalUTF8String(&bytes, bytes + v.texts[id].size()))
      return makeError("{0}: token {1} is special, but its text {2} is not UTF-8",
                       source.fileName(), id, quote(v.texts[id]));
    specials.push_back(id);
  }
  llvm::sort(specials, [&](uint32_t a, uint32_t b) { return tables.texts[a] < tables.texts[b]; });
  return specials;
}

flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<schema::Scanner>>>
writeScanners(const PatternScanners &scanners, flatbuffers::FlatBufferBuilder &builder) {
  if (llvm::all_of(scanners.tables, [](const auto &table) { return table.empty(); }))
    return 0;
  std::vector<flatbuffers::Offset<schema::Scanner>> written;
  for (const std::vector<uint16_t> &table : scanners.tables)
    written.push_back(schema::CreateScanner(builder, builder.CreateVector(table)));
  return builder.CreateVector(written);
}

flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<schema::NormalStep>>>
writeSteps(const TokenizerTables &tables, flatbuffers::FlatBufferBuilder &builder) {
  if (tables.steps.empty())
    return 0;
  auto bytes = [&](const std::string &text) {
    return builder.CreateVector(reinterpret_cast<const uint8_t *>(text.data()), text.size());
  };
  std::vector<flatbuffers::Offset<schema::NormalStep>> written;
  for (const TextStep &step : tables.steps)
    written.push_back(
        schema::CreateNormalStep(builder, step.kind, bytes(step.from), bytes(step.to)));
  return builder.CreateVector(written);
}

// The tables of all patterns. What needs more than one look at a character is
// refused: there are texts that it would take hours for.
llvm::Expected<PatternScanners> makeScanners(const ModelSource &source,
                                             const TokenizerTables &tables) {
  llvm::ArrayRef<std::string> patterns = tables.patterns;
  if (patterns.size() > schema::kMaxPatterns)
    return makeError("{0}: text is cut by {1} patterns, at most {2} can be used", source.fileName(),
                     patterns.size(), schema::kMaxPatterns);
  for (const std::string &pattern : patterns)
    if (pattern.size() > schema::kMaxPatternBytes)
      return makeError("{0}: the pattern {1} has {2} bytes, at most {3} can be used",
                       source.fileName(), quote(pattern), pattern.size(), schema::kMaxPatternBytes);
  PatternScanners scanners = buildScanners(patterns);
  for (auto [pattern, table] : llvm::zip(patterns, scanners.tables))
    if (table.empty())
      return makeError("{0}: the pattern {1} can't be followed one character at a time (it is no "
                       "pattern or too large, looks behind or far ahead, refers back, or repeats "
                       "what may be empty), so the model is not compiled",
                       source.fileName(), quote(pattern, 200));
  for (size_t index : tables.covering)
    if (!scanners.matchesEverything(index))
      return makeError("{0}: what the pattern {1} doesn't match is dropped from texts, and there "
                       "are such texts; izh keeps all of a text, so the model is not compiled",
                       source.fileName(), quote(patterns[index], 200));
  return std::move(scanners);
}

// Of each special token; empty if none takes blanks.
std::vector<uint8_t> stripsOf(const SpecialTables &specials, const TokenizerTables &tables) {
  std::vector<uint8_t> strips;
  for (uint32_t id : specials.ids)
    strips.push_back(tables.strips.lookup(id));
  if (llvm::all_of(strips, [](uint8_t bits) { return bits == 0; }))
    strips.clear();
  return strips;
}

std::vector<uint8_t> writeTables(const Vocabulary &v, const TokenizerTables &tables,
                                 const SpecialTables &specials, const SpecialTables &changed,
                                 const PatternScanners &scanners) {
  std::string text;
  std::vector<uint32_t> offsets{0};
  for (const std::string &token : tables.texts) {
    text += token;
    offsets.push_back(uint32_t(text.size()));
  }
  flatbuffers::FlatBufferBuilder builder(text.size() + (1 << 16));
  // Scores serve no lookup where merges have ranks.
  bool scores = tables.kind != schema::TokenizerKind::ByteBpe;
  auto vector = [&](const auto &values) {
    return values.empty() ? 0 : builder.CreateVector(values);
  };
  auto strips = vector(stripsOf(specials, tables)),
       changedStrips = vector(stripsOf(changed, tables));
  auto scannerTables = writeScanners(scanners, builder);
  auto steps = writeSteps(tables, builder);
  auto root = schema::CreateTokenizer(
      builder, tables.kind, builder.CreateVector(offsets),
      builder.CreateVector(reinterpret_cast<const uint8_t *>(text.data()), text.size()),
      builder.CreateVector(v.types), scores ? builder.CreateVector(v.scores) : 0,
      builder.CreateVector(tables.tokenSlots), builder.CreateVectorOfStructs(tables.merges),
      builder.CreateVector(tables.mergeSlots), builder.CreateVector(tables.byteTokens),
      builder.CreateVector(specials.ids), builder.CreateVectorOfStrings(tables.patterns),
      tables.wholeWords, tables.wordsAtSpaces, tables.addBos && v.bos >= 0,
      tables.addEos && v.eos >= 0, tables.addSpacePrefix, v.bos, v.eos, v.eot, v.unk, v.pad,
      builder.CreateVector(v.ends), tables.spacePrefixOnce, tables.spacePrefixSkips,
      tables.splitSpaces, tables.fuseUnknown, strips, scannerTables,
      builder.CreateVector(scanners.classes.pages), builder.CreateVector(scanners.classes.classes),
      uint16_t(scanners.symbols()), vector(tables.joins), steps, tables.unknownScore,
      tables.userDefinedInside, vector(tables.preciseScores), tables.longestWord,
      vector(tables.pieces), vector(specials.trie), tables.leftmostSpecials, vector(changed.ids),
      vector(changed.trie), changedStrips, tables.stepsBeforeSpecials, tables.prefixInSteps,
      vector(tables.byteCuts), tables.byteMarks);
  schema::FinishTokenizerBuffer(builder, root);
  return {builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()};
}

// 128 MB; the largest vocabularies have a million.
constexpr uint32_t kMostUnits = 1 << 24;

// Looks for what would make searching a text slow. `texts` are ascending.
llvm::Error checkStarts(const ModelSource &source, llvm::ArrayRef<TrieEntry> texts) {
  // Those that are starts of the one at hand, each a start of the next.
  std::vector<llvm::StringRef> starts;
  for (auto [text, number] : texts) {
    if (text.size() > schema::kMaxPieceBytes)
      return makeError("{0}: the token {1} has {2} bytes; texts can be searched for tokens of at "
                       "most {3} bytes",
                       source.fileName(), quote(text), text.size(), schema::kMaxPieceBytes);
    while (!starts.empty() && !text.starts_with(starts.back()))
      starts.pop_back();
    if (starts.size() == schema::kMaxPieceStarts)
      return makeError("{0}: more than {1} tokens are the start of the token {2}: every place of a "
                       "text would have to be compared with all of them",
                       source.fileName(), schema::kMaxPieceStarts, quote(text));
    starts.push_back(text);
  }
  return llvm::Error::success();
}

llvm::Expected<std::vector<uint64_t>> buildSortedTrie(const ModelSource &source,
                                                      llvm::ArrayRef<TrieEntry> entries) {
  if (llvm::Error error = checkStarts(source, entries))
    return std::move(error);
  std::vector<uint64_t> trie = buildTrie(entries, kMostUnits);
  if (trie.empty() && !entries.empty())
    return makeError("{0}: {1} tokens have too many bytes that they don't share, about {2} million "
                     "can be searched for",
                     source.fileName(), entries.size(), kMostUnits >> 20);
  return trie;
}

llvm::Expected<SpecialTables> buildSpecials(const ModelSource &source, const Vocabulary &v,
                                            const TokenizerTables &tables) {
  auto ids = findSpecials(source, v, tables);
  if (!ids)
    return ids.takeError();
  std::vector<TrieEntry> entries;
  for (uint32_t id : *ids)
    entries.emplace_back(tables.texts[id], uint32_t(entries.size()));
  auto trie = buildSortedTrie(source, entries);
  if (!trie)
    return trie.takeError();
  return SpecialTables{std::move(*ids), std::move(*trie)};
}

llvm::Expected<SpecialTables> buildChangedSpecials(const ModelSource &source,
                                                   const TokenizerTables &tables) {
  std::vector<uint32_t> ids;
  std::vector<TrieEntry> entries;
  for (const auto &[text, id] : tables.changedSpecials) {
    entries.emplace_back(text, uint32_t(entries.size()));
    ids.push_back(id);
  }
  llvm::sort(entries);
  auto trie = buildSortedTrie(source, entries);
  if (!trie)
    return trie.takeError();
  return SpecialTables{std::move(ids), std::move(*trie)};
}

} // namespace

llvm::Expected<std::vector<uint64_t>> izhc::buildTokenTrie(const ModelSource &source,
                                                           llvm::ArrayRef<std::string> texts,
                                                           llvm::ArrayRef<uint32_t> ids) {
  std::vector<TrieEntry> entries;
  for (uint32_t id : ids)
    entries.emplace_back(texts[id], id);
  return buildTokenTrie(source, std::move(entries));
}

llvm::Expected<std::vector<uint64_t>> izhc::buildTokenTrie(const ModelSource &source,
                                                           std::vector<TrieEntry> entries) {
  llvm::erase_if(entries, [](const TrieEntry &entry) { return entry.first.empty(); });
  llvm::sort(entries);
  // Of equal texts the lowest id counts.
  auto same = [](const TrieEntry &a, const TrieEntry &b) { return a.first == b.first; };
  entries.erase(std::unique(entries.begin(), entries.end(), same), entries.end());
  auto trie = buildSortedTrie(source, entries);
  if (!trie)
    return trie.takeError();
  // A vocabulary without any piece has a root all the same.
  if (trie->empty())
    trie->resize(schema::kTrieBlock);
  return trie;
}

llvm::Expected<std::vector<uint32_t>> izhc::buildTokenSlots(const ModelSource &source,
                                                            llvm::ArrayRef<std::string> texts,
                                                            llvm::ArrayRef<uint32_t> ids) {
  std::vector<SlotEntry> entries;
  entries.reserve(ids.size());
  for (uint32_t id : ids) {
    auto *bytes = reinterpret_cast<const uint8_t *>(texts[id].data());
    entries.push_back({schema::hash_bytes(bytes, texts[id].size()), id});
  }
  std::vector<uint32_t> slots = buildSlots(entries);
  if (slots.empty() && !entries.empty())
    return makeError("{0}: no table can hold the {1} tokens: their texts were made to collide",
                     source.fileName(), entries.size());
  return slots;
}

llvm::Expected<std::vector<uint8_t>> izhc::finishTokenizer(const ModelSource &source, Vocabulary &v,
                                                           TokenizerTables &tables) {
  // The kind may have a default for it.
  if (v.eos >= 0 && !llvm::is_contained(v.ends, uint32_t(v.eos)))
    v.ends.insert(llvm::upper_bound(v.ends, uint32_t(v.eos)), uint32_t(v.eos));
  if (llvm::Error error = checkSizes(source, v))
    return std::move(error);
  auto specials = buildSpecials(source, v, tables);
  if (!specials)
    return specials.takeError();
  auto changed = buildChangedSpecials(source, tables);
  if (!changed)
    return changed.takeError();
  auto scanners = makeScanners(source, tables);
  if (!scanners)
    return scanners.takeError();
  if (tables.steps.size() > schema::kMaxNormalSteps)
    return makeError("{0}: text is changed in {1} steps, at most {2} can be used",
                     source.fileName(), tables.steps.size(), schema::kMaxNormalSteps);
  return writeTables(v, tables, *specials, *changed, *scanners);
}

llvm::Expected<std::vector<uint8_t>>
izhc::buildTokenizer(const ModelSource &source, TextChanger change, llvm::StringRef preTokenizer) {
  for (llvm::StringRef file : {"tokenizer.json", "tokenizer.model"}) {
    auto bytes = source.companion(file);
    if (!bytes)
      continue;
    if (!preTokenizer.empty())
      return makeError("{0}: --pre-tokenizer={1} has no meaning here: {2} says how text is cut; "
                       "leave the flag out",
                       source.fileName(), preTokenizer, file);
    return file == "tokenizer.json" ? buildFromJson(source, *bytes, change)
                                    : buildFromPieces(source, *bytes);
  }
  auto model = source.getString("tokenizer.ggml.model");
  if (!model)
    return model.takeError();
  if (!*model && source.hasKey("tokenizer.ggml.tokens"))
    return makeError("{0}: there are tokenizer.ggml.tokens but no tokenizer.ggml.model that "
                     "says how to use them",
                     source.fileName());
  if (!*model || **model == "no_vocab" || **model == "none")
    return std::vector<uint8_t>();
  const Kind *kind = llvm::find_if(kKinds, [&](const Kind &k) { return **model == k.model; });
  if (kind == std::end(kKinds))
    return makeError(
        "{0}: tokenizer.ggml.model is {1}, which is not supported; supported are "
        "gpt2 (byte-level BPE), llama and gemma4 (SentencePiece BPE), t5 (unigram) and "
        "bert (WordPiece)",
        source.fileName(), quote(**model));
  auto vocabulary = readVocabulary(source);
  if (!vocabulary)
    return vocabulary.takeError();
  markControlTokens(*vocabulary);
  auto tables = kind->build(source, *vocabulary, preTokenizer);
  if (!tables)
    return tables.takeError();
  return finishTokenizer(source, *vocabulary, *tables);
}
