// Unigram vocabularies of SentencePiece: tokens compete by score. Texts are
// changed first as the model's own map and its rules for spaces say.

#include "compiler/support/Error.h"
#include "compiler/tokenizers/Charsmap.h"
#include "compiler/tokenizers/TokenizerTables.h"

using namespace izhc;
using izh::schema::NormalStepKind;
using izh::schema::TokenType;

namespace {

// What SentencePiece takes off the lowest score for an unknown character.
constexpr double kUnknownPenalty = 10;

} // namespace

llvm::Error izhc::addCharsmap(llvm::Twine where, std::string map, TokenizerTables &tables) {
  if (map.empty())
    return llvm::Error::success();
  if (std::string problem = charsmapProblem(map); !problem.empty())
    return makeError("{0}: the map of characters {1}", where.str(), problem);
  tables.steps.push_back({NormalStepKind::Charsmap, std::move(map), ""});
  return llvm::Error::success();
}

void izhc::dropExtraSpaces(TokenizerTables &tables) {
  tables.steps.push_back({NormalStepKind::ReplaceSpaces, "", " "});
  tables.steps.push_back({NormalStepKind::StripLeft, " ", ""});
  tables.steps.push_back({NormalStepKind::StripRight, " ", ""});
}

llvm::Error izhc::fillUnigram(const ModelSource &source, Vocabulary &v, bool userDefinedInside,
                              TokenizerTables &tables) {
  tables.kind = izh::schema::TokenizerKind::Unigram;
  tables.userDefinedInside = userDefinedInside;
  addJoins("", tables);
  std::vector<uint32_t> ids;
  double lowest = 0;
  float highest = -std::numeric_limits<float>::infinity();
  for (uint32_t id = 0; id < v.size(); ++id) {
    tables.texts.push_back(v.texts[id].str());
    auto type = TokenType(v.types[id]);
    // Whatever else the token is, if the file lists it as a piece. Otherwise no control
    // token comes of text that only looks like it.
    bool named = !v.pieces.empty() && v.pieces[id] && int32_t(id) != v.unk;
    bool competes =
        type == TokenType::Normal || named || (type == TokenType::UserDefined && userDefinedInside);
    if (!competes || v.findPiece(v.texts[id]) != int32_t(id))
      continue;
    ids.push_back(id);
    addJoins(v.texts[id], tables);
    if (type == TokenType::Normal || named) {
      double score = tables.preciseScores.empty() ? v.scores[id] : tables.preciseScores[id];
      lowest = std::min(lowest, score);
      highest = std::max(highest, v.scores[id]);
    }
  }
  // So that they win over any other way.
  for (uint32_t id : ids)
    if (TokenType(v.types[id]) == TokenType::UserDefined && userDefinedInside)
      v.scores[id] = float(v.texts[id].size()) * highest - 0.1f;
  tables.unknownScore = lowest - kUnknownPenalty;
  auto pieces = buildTokenTrie(source, tables.texts, ids);
  if (!pieces)
    return pieces.takeError();
  tables.pieces = std::move(*pieces);
  // Only tokens that are marked as bytes stand for some.
  tables.byteTokens.assign(256, -1);
  if (llvm::is_contained(v.types, uint8_t(TokenType::Byte)))
    for (unsigned byte = 0; byte < 256; ++byte)
      if (int32_t id = v.find(byteTokenText(byte));
          id >= 0 && TokenType(v.types[id]) == TokenType::Byte)
        tables.byteTokens[byte] = id;
  return llvm::Error::success();
}

llvm::Expected<TokenizerTables> izhc::buildUnigram(const ModelSource &source, Vocabulary &v,
                                                   llvm::StringRef preTokenizer) {
  if (!preTokenizer.empty())
    return makeError("{0}: --pre-tokenizer={1} has no meaning here: the tokenizer splits no "
                     "words; leave the flag out",
                     source.fileName(), preTokenizer);
  if (v.scores.empty())
    return makeError("{0}: there is no tokenizer.ggml.scores, but this tokenizer chooses by "
                     "score",
                     source.fileName());
  TokenizerTables tables;
  constexpr llvm::StringLiteral mapKey("tokenizer.ggml.precompiled_charsmap");
  auto map = source.getIntArray(mapKey);
  if (!map)
    return map.takeError();
  std::string bytes;
  if (*map)
    for (int64_t byte : **map)
      bytes += char(byte);
  if (llvm::Error error = addCharsmap(source.fileName() + ": " + mapKey, bytes, tables))
    return std::move(error);
  auto extra = source.getBool("tokenizer.ggml.remove_extra_whitespaces");
  if (!extra)
    return extra.takeError();
  if (extra->value_or(false))
    dropExtraSpaces(tables);
  // What files of this kind leave out.
  int32_t *defaults[] = {&v.pad, &v.eos, &v.unk};
  for (int32_t id = 0; id < 3; ++id)
    if (*defaults[id] < 0 && size_t(id) < v.size())
      *defaults[id] = id;
  if (llvm::Error error = fillUnigram(source, v, /*userDefinedInside=*/false, tables))
    return std::move(error);
  tables.addBos = v.addBos.value_or(false);
  tables.addEos = v.addEos.value_or(true);
  tables.addSpacePrefix = v.addSpacePrefix.value_or(true);
  return std::move(tables);
}
