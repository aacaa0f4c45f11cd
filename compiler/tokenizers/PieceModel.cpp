// From tokenizer.model, which SentencePiece writes as a protobuf, to a
// vocabulary. Only the fields that izh needs are read, by a reader that knows
// the wire format: a length, a varint, four or eight bytes.

#include "compiler/import/ByteReader.h"
#include "compiler/support/Error.h"
#include "compiler/support/Json.h"
#include "compiler/tokenizers/ChatTemplate.h"
#include "compiler/tokenizers/JsonFields.h"
#include "compiler/tokenizers/TokenizerTables.h"
#include "runtime/schema/tokenizer_hash.h"

#include <bit>
#include <cmath>

using namespace izhc;
using izh::schema::TokenType;

namespace {

struct Field {
  uint32_t number = 0;
  uint64_t value = 0; // of varints and fixed sizes
  llvm::ArrayRef<uint8_t> bytes;
  llvm::StringRef text() const {
    return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
  }
};

bool readVarint(ByteReader &in, uint64_t &value) {
  value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    uint8_t byte;
    if (!in.read(byte))
      return false;
    value |= uint64_t(byte & 0x7f) << shift;
    if (byte < 0x80)
      return true;
  }
  return false;
}

// Calls `take` for each field; false if the bytes are no message.
bool readMessage(llvm::ArrayRef<uint8_t> bytes, llvm::function_ref<bool(const Field &)> take) {
  ByteReader in(bytes);
  while (in.left() > 0) {
    uint64_t tag, length;
    if (!readVarint(in, tag) || tag >> 3 == 0 || tag >> 3 > 0x1fffffff)
      return false;
    Field field;
    field.number = uint32_t(tag >> 3);
    uint32_t four;
    switch (tag & 7) {
    case 0:
      if (!readVarint(in, field.value))
        return false;
      break;
    case 1:
      if (!in.read(field.value))
        return false;
      break;
    case 2:
      if (!readVarint(in, length) || length > in.left())
        return false;
      field.bytes = bytes.slice(in.position(), length);
      if (!in.skip(length))
        return false;
      break;
    case 5:
      if (!in.read(four))
        return false;
      field.value = four;
      break;
    default:
      return false;
    }
    if (!take(field))
      return false;
  }
  return true;
}

// Numbers of model.TrainerSpec.ModelType.
constexpr uint64_t kUnigram = 1, kBpe = 2;

struct PieceModel {
  Vocabulary v;
  uint64_t modelType = 1;
  bool addPrefix = true, collapsesSpaces = true, spaceBehind = false, escapesSpaces = true;
  std::string characterMap;
};

bool readPiece(llvm::ArrayRef<uint8_t> bytes, Vocabulary &v) {
  llvm::StringRef text;
  float score = 0;
  uint64_t type = 1;
  bool good = readMessage(bytes, [&](const Field &field) {
    if (field.number == 1)
      text = field.text();
    else if (field.number == 2)
      score = std::bit_cast<float>(uint32_t(field.value));
    else if (field.number == 3)
      type = field.value;
    return true;
  });
  // The numbers of piece types are those of the section.
  if (!good || std::isnan(score) || type > uint64_t(TokenType::MAX) ||
      v.texts.size() + 1 >= izh::schema::kSlotValue)
    return false;
  v.texts.push_back(text);
  v.scores.push_back(score);
  v.types.push_back(uint8_t(type));
  return true;
}

bool readTrainer(llvm::ArrayRef<uint8_t> bytes, PieceModel &model) {
  return readMessage(bytes, [&](const Field &field) {
    int32_t *ids[] = {&model.v.unk, &model.v.bos, &model.v.eos, &model.v.pad};
    if (field.number == 3)
      model.modelType = field.value;
    else if (field.number == 24)
      model.spaceBehind = field.value != 0;
    else if (field.number >= 40 && field.number <= 43)
      *ids[field.number - 40] = int32_t(field.value);
    return true;
  });
}

bool readNormalizer(llvm::ArrayRef<uint8_t> bytes, PieceModel &model) {
  return readMessage(bytes, [&](const Field &field) {
    if (field.number == 2)
      model.characterMap = field.text().str();
    else if (field.number == 3)
      model.addPrefix = field.value != 0;
    else if (field.number == 4)
      model.collapsesSpaces = field.value != 0;
    else if (field.number == 5)
      model.escapesSpaces = field.value != 0;
    return true;
  });
}

llvm::Expected<PieceModel> readModel(const ModelSource &source, llvm::ArrayRef<uint8_t> bytes) {
  PieceModel model;
  // What the format says where the file doesn't.
  model.v.unk = 0;
  model.v.bos = 1;
  model.v.eos = 2;
  bool good = readMessage(bytes, [&](const Field &field) {
    if (field.number == 1)
      return readPiece(field.bytes, model.v);
    if (field.number == 2)
      return readTrainer(field.bytes, model);
    return field.number != 3 || readNormalizer(field.bytes, model);
  });
  if (!good || model.v.texts.empty())
    return makeError("{0}/tokenizer.model: this is no SentencePiece model, or it is damaged",
                     source.fileName());
  if ((model.modelType != kBpe && model.modelType != kUnigram) || model.spaceBehind)
    return makeError(
        "{0}/tokenizer.model: only SentencePiece models of type 1 (unigram) or 2 (BPE) "
        "with spaces before words can be compiled; this one is of type {1}{2}",
        source.fileName(), model.modelType, model.spaceBehind ? " with spaces behind words" : "");
  if (!model.escapesSpaces)
    return makeError("{0}/tokenizer.model: its pieces have spaces as they are "
                     "(escape_whitespaces is false), which izh doesn't know",
                     source.fileName());
  // They would have to be cut out before the text is changed, and spaces beside
  // them kept.
  if (model.modelType == kBpe && (model.collapsesSpaces || !model.characterMap.empty()) &&
      llvm::is_contained(model.v.types, uint8_t(TokenType::UserDefined)))
    return makeError("{0}/tokenizer.model: a SentencePiece model of type BPE that changes the text "
                     "and has user-defined pieces can't be compiled",
                     source.fileName());
  return std::move(model);
}

class PieceTokenizer {
public:
  explicit PieceTokenizer(const ModelSource &source) : source(source) {}

  llvm::Expected<std::vector<uint8_t>> run(llvm::ArrayRef<uint8_t> bytes) {
    auto read = readModel(source, bytes);
    if (!read)
      return read.takeError();
    v = std::move(read->v);
    if (llvm::Error error = addTokens())
      return std::move(error);
    for (size_t i = 0; i < v.size(); ++i)
      if (!v.texts[i].empty())
        v.ids.try_emplace(llvm::CachedHashStringRef(v.texts[i]), uint32_t(i));
    if (v.unk < 0 || size_t(v.unk) >= v.size())
      return makeError("{0}/tokenizer.model: unk_id is {1}, but the last piece is {2}",
                       source.fileName(), v.unk, v.size() - 1);
    // Small vocabularies needn't have these.
    for (int32_t *id : {&v.bos, &v.eos, &v.pad})
      if (*id < 0 || size_t(*id) >= v.size())
        *id = -1;
    v.addSpacePrefix = read->addPrefix;
    bool unigram = read->modelType == kUnigram;
    JsonFields fields(config);
    v.addBos = fields.flag("add_bos_token", !unigram);
    v.addEos = fields.flag("add_eos_token", unigram);
    if (config.isObject() && !fields.wrongKind().empty())
      return makeError("{0}/tokenizer_config.json: {1}", source.fileName(), fields.wrongKind());
    markControlTokens(v);
    TokenizerTables tables;
    if (llvm::Error error = fill(unigram, tables))
      return std::move(error);
    if (llvm::Error error =
            addCharsmap(source.fileName() + "/tokenizer.model", read->characterMap, tables))
      return std::move(error);
    if (read->collapsesSpaces) {
      dropExtraSpaces(tables);
      // At its end the library takes that character for a space.
      tables.steps.push_back({izh::schema::NormalStepKind::StripRight, "\xe2\x96\x81", ""});
    }
    return finishTokenizer(source, v, tables);
  }

private:
  llvm::Error fill(bool unigram, TokenizerTables &tables) {
    if (!unigram) {
      auto built = buildScoreBpe(source, v, "");
      if (!built)
        return built.takeError();
      tables = std::move(*built);
      tables.fuseUnknown = !llvm::is_contained(v.types, uint8_t(TokenType::Byte));
      return llvm::Error::success();
    }
    tables.addBos = *v.addBos;
    tables.addEos = *v.addEos;
    tables.addSpacePrefix = *v.addSpacePrefix;
    return fillUnigram(source, v, /*userDefinedInside=*/true, tables);
  }

  llvm::Error parse(llvm::StringRef file, Json &into) {
    auto bytes = source.companion(file);
    if (!bytes)
      return llvm::Error::success();
    auto json = parseJson((source.fileName() + "/" + file).str(), *bytes);
    if (!json)
      return json.takeError();
    into = std::move(*json);
    return llvm::Error::success();
  }

  // Tokens that were added to the model later, by id.
  llvm::Error addTokens() {
    if (llvm::Error error = parse("tokenizer_config.json", config))
      return error;
    if (llvm::Error error = parse("added_tokens.json", added))
      return error;
    if (!added.isNull() && !added.isObject())
      return makeError("{0}/added_tokens.json: this is no JSON object of tokens and their ids",
                       source.fileName());
    size_t pieces = v.texts.size();
    for (size_t i = 0; i < added.items().size(); ++i) {
      std::optional<uint64_t> id = added.items()[i].asUInt();
      // As in tokenizer.json, a small file may not ask for large tables.
      if (!id || *id + 1 >= izh::schema::kSlotValue ||
          *id > (1 << 16) + 8 * (pieces + added.items().size()))
        return makeError("{0}/added_tokens.json: the token {1} has no sensible id",
                         source.fileName(), quote(added.key(i)));
      if (*id >= v.texts.size()) {
        v.texts.resize(*id + 1);
        v.types.resize(*id + 1, uint8_t(TokenType::Unused));
        v.scores.resize(*id + 1);
      }
      v.texts[*id] = added.key(i);
      v.types[*id] = uint8_t(TokenType::Control);
    }
    return llvm::Error::success();
  }

  const ModelSource &source;
  Vocabulary v;
  Json config, added;
};

} // namespace

llvm::Expected<std::vector<uint8_t>> izhc::buildFromPieces(const ModelSource &source,
                                                           llvm::ArrayRef<uint8_t> bytes) {
  return PieceTokenizer(source).run(bytes);
}
