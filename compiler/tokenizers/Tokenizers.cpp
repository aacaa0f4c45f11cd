// Chooses the kind of tokenizer by tokenizer.ggml.model and writes the
// flatbuffer.

#include "compiler/tokenizers/Tokenizers.h"
#include "compiler/support/Error.h"
#include "compiler/tokenizers/PatternScanner.h"
#include "compiler/tokenizers/SlotTable.h"
#include "compiler/tokenizers/TokenizerTables.h"
#include "runtime/schema/tokenizer_hash.h"
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

// Tokens that a text is searched for, ordered by their bytes, the lowest id of
// equal ones. They must be UTF-8: cutting them out may not cut characters.
llvm::Expected<std::vector<uint32_t>> findSpecials(const ModelSource &source, const Vocabulary &v,
                                                   const TokenizerTables &tables) {
  std::vector<uint32_t> specials;
  for (uint32_t id = 0; id < v.size(); ++id) {
    auto type = schema::TokenType(v.types[id]);
    bool special = type == schema::TokenType::Control || type == schema::TokenType::Unknown ||
                   (type == schema::TokenType::UserDefined && !tables.userDefinedInside);
    if (!special || v.find(v.texts[id]) != int32_t(id))
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

std::vector<uint8_t> writeTables(const Vocabulary &v, const TokenizerTables &tables,
                                 llvm::ArrayRef<uint32_t> specials) {
  std::string text;
  std::vector<uint32_t> offsets{0};
  for (const std::string &token : tables.texts) {
    text += token;
    offsets.push_back(uint32_t(text.size()));
  }
  flatbuffers::FlatBufferBuilder builder(text.size() + (1 << 16));
  // Scores serve no lookup where merges have ranks.
  bool scores = tables.kind != schema::TokenizerKind::ByteBpe;
  std::vector<uint8_t> strips;
  for (uint32_t id : specials)
    strips.push_back(tables.strips.lookup(id));
  if (llvm::all_of(strips, [](uint8_t bits) { return bits == 0; }))
    strips.clear();
  PatternScanners scanners = buildScanners(tables.patterns);
  auto scannerTables = writeScanners(scanners, builder);
  auto steps = writeSteps(tables, builder);
  auto root = schema::CreateTokenizer(
      builder, tables.kind, builder.CreateVector(offsets),
      builder.CreateVector(reinterpret_cast<const uint8_t *>(text.data()), text.size()),
      builder.CreateVector(v.types), scores ? builder.CreateVector(v.scores) : 0,
      builder.CreateVector(tables.tokenSlots), builder.CreateVectorOfStructs(tables.merges),
      builder.CreateVector(tables.mergeSlots), builder.CreateVector(tables.byteTokens),
      builder.CreateVector(specials.data(), specials.size()),
      builder.CreateVectorOfStrings(tables.patterns), tables.wholeWords, tables.wordsAtSpaces,
      tables.addBos && v.bos >= 0, tables.addEos && v.eos >= 0, tables.addSpacePrefix, v.bos, v.eos,
      v.eot, v.unk, v.pad, builder.CreateVector(v.ends), tables.spacePrefixOnce,
      tables.spacePrefixSkips, tables.splitSpaces, tables.fuseUnknown,
      strips.empty() ? 0 : builder.CreateVector(strips), scannerTables,
      builder.CreateVector(scanners.classes.pages), builder.CreateVector(scanners.classes.classes),
      uint16_t(scanners.symbols()), tables.joins.empty() ? 0 : builder.CreateVector(tables.joins),
      steps, tables.prefixes.empty() ? 0 : builder.CreateVector(tables.prefixes),
      tables.unknownScore, tables.userDefinedInside,
      tables.preciseScores.empty() ? 0 : builder.CreateVector(tables.preciseScores),
      tables.longestWord);
  schema::FinishTokenizerBuffer(builder, root);
  return {builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()};
}

} // namespace

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
  auto specials = findSpecials(source, v, tables);
  if (!specials)
    return specials.takeError();
  return writeTables(v, tables, *specials);
}

llvm::Expected<std::vector<uint8_t>> izhc::buildTokenizer(const ModelSource &source,
                                                          llvm::StringRef preTokenizer) {
  for (auto [file, build] : {std::pair("tokenizer.json", &buildFromJson),
                             std::pair("tokenizer.model", &buildFromPieces)}) {
    auto bytes = source.companion(file);
    if (!bytes)
      continue;
    if (!preTokenizer.empty())
      return makeError("{0}: --pre-tokenizer={1} has no meaning here: {2} says how text is cut; "
                       "leave the flag out",
                       source.fileName(), preTokenizer, file);
    return build(source, *bytes);
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
