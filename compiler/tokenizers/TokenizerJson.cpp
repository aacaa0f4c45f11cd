// From tokenizer.json, with the ids that the files beside it name, to the
// tokenizer section: byte-level BPE, BPE of characters with byte fallback,
// unigram and WordPiece.

#include "compiler/import/JsonSource.h"
#include "compiler/support/Error.h"
#include "compiler/tokenizers/ChatTemplate.h"
#include "compiler/tokenizers/JsonFields.h"
#include "compiler/tokenizers/JsonPipeline.h"
#include "compiler/tokenizers/TokenizerTables.h"
#include "runtime/schema/tokenizer_hash.h"
#include "runtime/schema/tokenizer_limits.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/JSON.h"
#include <cmath>

using namespace izhc;
using izh::schema::TokenType;

namespace {

class JsonTokenizer {
public:
  JsonTokenizer(const ModelSource &source, const Json &root, TextChanger change)
      : source(source), root(root), change(change) {}

  llvm::Expected<std::vector<uint8_t>> run() {
    const Json *found = root.find("model");
    if (!found || !found->isObject())
      return makeError("{0}/tokenizer.json: there is no 'model'", source.fileName());
    model = found;
    if (llvm::Error error = readFields())
      return std::move(error);
    auto steps = readPipeline(source, root);
    if (!steps)
      return steps.takeError();
    pipeline = std::move(*steps);
    for (auto read : {&JsonTokenizer::checkModel, &JsonTokenizer::readVocabulary,
                      &JsonTokenizer::readAdded, &JsonTokenizer::readIds})
      if (llvm::Error error = (this->*read)())
        return std::move(error);
    v.pieces.resize(v.size());
    findEnds();
    if (llvm::Error error = fillTables())
      return std::move(error);
    return finishTokenizer(source, v, tables);
  }

private:
  template <typename... Ts> llvm::Error wrong(const char *format, Ts &&...values) const {
    return makeError("{0}/tokenizer.json: {1}", source.fileName(),
                     llvm::formatv(format, std::forward<Ts>(values)...).str());
  }

  // What the model says beside its vocabulary.
  llvm::Error readFields() {
    JsonFields fields(*model);
    llvm::StringRef type = fields.text("type");
    // Files that don't say are of the oldest kind, or list scores.
    if (type.empty())
      type = model->find("unk_id") ? "Unigram" : "BPE";
    unigram = type == "Unigram";
    wordPiece = type == "WordPiece";
    if (!unigram && !wordPiece && (type != "BPE" || !model->find("merges")))
      return wrong("the model is of type {0}, expected BPE, Unigram or WordPiece; perhaps there is "
                   "a GGUF file of the model",
                   quote(type));
    fields.ignore({"vocab", "cache_capacity"});
    if (unigram) {
      unknownId = fields.number("unk_id");
      byteFallback = fields.flag("byte_fallback", false);
    } else {
      unknownText = fields.text("unk_token", wordPiece ? "[UNK]" : "").str();
      inside = fields.text("continuing_subword_prefix", wordPiece ? "##" : "").str();
    }
    if (wordPiece)
      longestWord = fields.number("max_input_chars_per_word").value_or(100);
    if (!unigram && !wordPiece) {
      byteFallback = fields.flag("byte_fallback", false);
      fuseUnknown = fields.flag("fuse_unk", false);
      wholeWords = fields.flag("ignore_merges", false);
      fields.ignore({"merges"});
      const Json *dropout = fields.value("dropout");
      if (dropout && dropout->asNumber() != 0.0)
        return wrong("the model drops merges at random (dropout), which izh doesn't do");
      if (!inside.empty() || !fields.text("end_of_word_suffix").empty())
        return wrong("the model has a continuing_subword_prefix or an end_of_word_suffix, which "
                     "izh doesn't know");
    }
    std::string problem = fields.problem();
    return problem.empty() ? llvm::Error::success()
                           : wrong("the model can't be read: {0}", problem);
  }

  llvm::Error checkModel() {
    bool others = pipeline.byteLevel || pipeline.escapesSpaces || !pipeline.patterns.empty();
    if (wordPiece != pipeline.bertWords || (wordPiece && others))
      return wrong("words are cut in a way that izh doesn't know for a model of type {0}",
                   wordPiece ? "'WordPiece'"
                   : unigram ? "'Unigram'"
                             : "'BPE'");
    if (wordPiece)
      return llvm::Error::success();
    if (pipeline.byteLevel == pipeline.escapesSpaces || (unigram && pipeline.byteLevel))
      return wrong("text is cut neither into bytes nor at spaces in a way that izh knows");
    if (!pipeline.byteLevel && !pipeline.patterns.empty())
      return wrong("characters are merged in words cut by a pattern, which izh doesn't know");
    return llvm::Error::success();
  }

  llvm::Error place(llvm::StringRef text, std::optional<uint64_t> id, TokenType type) {
    if (!id || *id >= izh::schema::kSlotValue || *id > highestId())
      return wrong("the token {0} has no sensible id", quote(text));
    if (*id >= v.texts.size()) {
      v.texts.resize(*id + 1);
      v.types.resize(*id + 1, uint8_t(TokenType::Unused));
    }
    if (!v.texts[*id].empty() && v.texts[*id] != text)
      return wrong("the tokens {0} and {1} have the same id {2}", quote(v.texts[*id]), quote(text),
                   *id);
    v.texts[*id] = text;
    v.types[*id] = uint8_t(type);
    // Which of two ids a text would get is the library's secret.
    if (text.empty())
      return llvm::Error::success();
    auto [known, added] = v.ids.try_emplace(llvm::CachedHashStringRef(text), uint32_t(*id));
    if (known->second != *id)
      return wrong("the token {0} has the id {1}, but it is token {2} too", quote(text), *id,
                   known->second);
    return llvm::Error::success();
  }

  // Tables have a place for each id up to the highest, so a small file may not
  // name a large one. Published vocabularies have few holes.
  uint64_t highestId() const {
    uint64_t tokens = 0;
    for (const Json *list : {model->find("vocab"), root.find("added_tokens")})
      tokens += list ? list->items().size() : 0;
    return (1 << 16) + 8 * tokens;
  }

  // Unigram: pairs of text and score.
  llvm::Error readPieces() {
    const Json *pieces = model->find("vocab");
    for (const Json &piece : pieces ? pieces->items() : llvm::ArrayRef<Json>()) {
      auto pair = piece.items();
      auto text = pair.size() == 2 ? pair[0].asString() : std::nullopt;
      auto score = pair.size() == 2 ? pair[1].asNumber() : std::nullopt;
      if (!text || !score || std::isnan(*score))
        return wrong("entry {0} of the vocabulary is no pair of text and score", v.texts.size());
      if (llvm::Error error = place(*text, v.texts.size(), TokenType::Normal))
        return error;
      v.scores.push_back(float(*score));
      tables.preciseScores.push_back(*score);
    }
    if (v.texts.empty())
      return wrong("the model has no 'vocab'");
    v.pieces.assign(v.size(), true);
    if (!unknownId)
      return llvm::Error::success();
    if (*unknownId >= v.texts.size())
      return wrong("the model's unk_id is {0}, but the last token is {1}", *unknownId,
                   v.texts.size() - 1);
    v.unk = int32_t(*unknownId);
    v.types[v.unk] = uint8_t(TokenType::Unknown);
    return llvm::Error::success();
  }

  llvm::Error readVocabulary() {
    if (unigram)
      return readPieces();
    const Json *vocabulary = model->find("vocab");
    if (!vocabulary || !vocabulary->isObject() || vocabulary->items().empty())
      return wrong("the model has no 'vocab'");
    for (size_t i = 0; i < vocabulary->items().size(); ++i)
      if (llvm::Error error =
              place(vocabulary->key(i), vocabulary->items()[i].asUInt(), TokenType::Normal))
        return error;
    v.pieces.resize(v.size());
    for (size_t id = 0; id < v.size(); ++id)
      v.pieces[id] = !v.texts[id].empty();
    return llvm::Error::success();
  }

  llvm::Error readAdded() {
    const Json *added = root.find("added_tokens");
    for (const Json &token : added ? added->items() : llvm::ArrayRef<Json>()) {
      JsonFields fields(token);
      llvm::StringRef content = fields.text("content");
      std::optional<uint64_t> id = fields.number("id");
      bool control = fields.flag("special", false);
      int strips = fields.flag("lstrip", false) + 2 * fields.flag("rstrip", false) +
                   4 * fields.flag("single_word", false);
      bool normalized = fields.flag("normalized", false);
      if (std::string problem = fields.problem(); !problem.empty())
        return wrong("the added token {0} can't be read: {1}", quote(content), problem);
      if (content.empty() || !id)
        return wrong("an added token has no content or no id");
      if (llvm::Error error =
              place(content, id, control ? TokenType::Control : TokenType::UserDefined))
        return error;
      if (normalized)
        if (llvm::Error error = addChanged(content, uint32_t(*id)))
          return error;
      tables.cutOut.insert(uint32_t(*id));
      if (strips)
        tables.strips[uint32_t(*id)] = uint8_t(strips);
    }
    return llvm::Error::success();
  }

  // The token is looked for in the text that the normalizer makes, as what it makes
  // of the token. Of two that it makes equal the library finds any one.
  llvm::Error addChanged(llvm::StringRef content, uint32_t id) {
    auto steps = llvm::ArrayRef(pipeline.steps).take_front(pipeline.normalSteps);
    if (!llvm::json::isUTF8(content))
      return wrong("the added token {0} is not UTF-8", quote(content));
    auto text = change(steps, content);
    if (!text)
      return wrong("the added token {0} is 'normalized', and the normalizer can't be used on it: "
                   "{1}",
                   quote(content), llvm::toString(text.takeError()));
    if (text->empty())
      return wrong("the added token {0} is 'normalized', and the normalizer leaves nothing of it",
                   quote(content));
    auto [known, added] = changedIds.try_emplace(*text, id);
    if (known->second != id)
      return wrong("the normalizer makes the added tokens {0} and {1} equal, so it is not known "
                   "which of the two a text has; set 'normalized' of one to false",
                   quote(v.texts[known->second]), quote(content));
    if (added)
      tables.changedSpecials.emplace_back(std::move(*text), id);
    return llvm::Error::success();
  }

  // Ids in a file beside: one or several.
  llvm::Error addIds(llvm::StringRef file, llvm::StringRef key, std::vector<uint32_t> &ids) {
    auto bytes = source.companion(file);
    if (!bytes)
      return llvm::Error::success();
    auto json = parseJson((source.fileName() + "/" + file).str(), *bytes);
    if (!json)
      return json.takeError();
    const Json *text = json->find("text_config");
    const Json *value = text && text->find(key) ? text->find(key) : json->find(key);
    if (!value || value->isNull())
      return llvm::Error::success();
    for (const Json &one : value->isArray() ? value->items() : llvm::ArrayRef(*value)) {
      std::optional<uint64_t> id = one.asUInt();
      // Some have -1 where there is none.
      if (!id && !one.asInt())
        return makeError("{0}/{1}: {2} is {3}, expected ids of tokens; correct the file, or fetch "
                         "it again",
                         source.fileName(), file, quote(key), jsonText(*value));
      if (id && *id < v.size())
        ids.push_back(uint32_t(*id));
    }
    return llvm::Error::success();
  }

  llvm::Error readIds() {
    auto named = readChatTemplate(source);
    if (!named)
      return named.takeError();
    std::vector<uint32_t> begins;
    for (llvm::StringRef file : {"generation_config.json", "config.json"}) {
      if (llvm::Error error = addIds(file, "eos_token_id", v.ends))
        return error;
      if (llvm::Error error = addIds(file, "bos_token_id", begins))
        return error;
    }
    v.bos = named->bosToken ? v.find(*named->bosToken) : -1;
    v.eos = named->eosToken ? v.find(*named->eosToken) : -1;
    if (v.bos < 0 && !begins.empty())
      v.bos = int32_t(begins.front());
    if (v.eos < 0 && !v.ends.empty())
      v.eos = int32_t(v.ends.front());
    if (!unigram && !unknownText.empty())
      v.unk = v.find(unknownText);
    // Byte-level vocabularies have no need of it.
    if (!unigram && !unknownText.empty() && v.unk < 0 && !pipeline.byteLevel)
      return wrong("the model's unk_token is {0}, which is no token", quote(unknownText));
    // What surrounds a text is also what a text begins and ends with.
    for (auto [name, id] :
         {std::pair(&pipeline.before, &v.bos), std::pair(&pipeline.after, &v.eos)}) {
      if (name->text.empty())
        continue;
      *id = v.find(name->text);
      if (*id < 0)
        return wrong("the post_processor adds {0}, which is no token", quote(name->text));
      if (name->id && *name->id != uint64_t(*id))
        return wrong("the post_processor adds {0} as id {1}, but that token is {2}",
                     quote(name->text), *name->id, *id);
    }
    tables.leftmostSpecials = true;
    tables.addBos = !pipeline.before.text.empty();
    tables.addEos = !pipeline.after.text.empty();
    return llvm::Error::success();
  }

  // The file says which tokens are special, so well-known texts only help to
  // find those among them that end a turn.
  void findEnds() {
    std::vector<uint8_t> types = v.types;
    std::vector<bool> named(v.size());
    for (uint32_t id : v.ends)
      named[id] = true;
    markControlTokens(v);
    v.types = std::move(types);
    llvm::erase_if(v.ends, [&](uint32_t id) {
      return v.types[id] == uint8_t(TokenType::Normal) && !named[id];
    });
    if (v.eot >= 0 && v.types[v.eot] == uint8_t(TokenType::Normal))
      v.eot = -1;
  }

  llvm::Expected<std::vector<MergeText>> readMerges() const {
    std::vector<MergeText> merges;
    const Json *list = model->find("merges");
    merges.reserve(list->items().size());
    for (const Json &merge : list->items()) {
      if (auto text = merge.asString()) {
        // The first part is never empty, but it may start with a space.
        size_t space = text->find(' ', 1);
        if (space == llvm::StringRef::npos)
          return wrong("merge {0} is {1}, expected two parts", merges.size(), quote(*text));
        merges.emplace_back(text->take_front(space), text->drop_front(space + 1));
        continue;
      }
      auto items = merge.items();
      if (items.size() != 2 || !items[0].asString() || !items[1].asString())
        return wrong("merge {0} is {1}, expected two strings", merges.size(), items.size());
      merges.emplace_back(*items[0].asString(), *items[1].asString());
    }
    return std::move(merges);
  }

  llvm::Error fillTables() {
    tables.steps = pipeline.steps;
    tables.stepsBeforeSpecials = uint32_t(pipeline.normalSteps);
    tables.prefixInSteps = pipeline.prefixInSteps;
    // There is nothing to fall back to without such tokens.
    byteFallback &= llvm::any_of(llvm::seq(256u),
                                 [&](unsigned byte) { return v.find(byteTokenText(byte)) >= 0; });
    if (unigram)
      return fillPieces();
    if (wordPiece)
      return fillWords();
    return fillMerges();
  }

  llvm::Error fillPieces() {
    for (unsigned byte = 0; byte < 256; ++byte) {
      int32_t id = byteFallback ? v.find(byteTokenText(byte)) : -1;
      if (id >= 0)
        v.types[id] = uint8_t(TokenType::Byte);
      else if (v.unk < 0)
        return wrong("the model has neither an unk_id nor a token for each byte, so some texts "
                     "have no ids");
    }
    v.scores.resize(v.size());
    tables.preciseScores.resize(v.size());
    tables.addSpacePrefix = pipeline.spacePrefix;
    tables.spacePrefixOnce = pipeline.spacePrefixOnce;
    tables.spacePrefixSkips = pipeline.spacePrefixSkips;
    tables.splitSpaces = pipeline.splitSpaces;
    if (llvm::Error error = fillUnigram(source, v, /*userDefinedInside=*/false, tables))
      return error;
    return checkFallback();
  }

  // Each token begins a word as it is written, and goes on with one without the mark
  // for the inside, which may be empty.
  llvm::Error fillWords() {
    WordParts parts;
    // Punctuation is a word of its own, so what has more to it begins none.
    bool marked = llvm::any_of(inside, llvm::isPunct);
    for (uint32_t id = 0; id < v.size(); ++id) {
      llvm::StringRef text = v.texts[id];
      auto type = TokenType(v.types[id]);
      tables.texts.push_back(text.str());
      if (!v.pieces[id])
        continue;
      bool goesOn = text.starts_with(inside);
      if (goesOn)
        parts.emplace_back(text.drop_front(inside.size()).str(), id);
      if (!goesOn || !marked || text.size() == 1)
        parts.emplace_back(izh::schema::kWordMark + text.str(), id);
      // Others are looked for as they are written.
      if (type == TokenType::Normal)
        tables.texts[id] =
            goesOn && !inside.empty() ? text.drop_front(inside.size()).str() : " " + text.str();
    }
    tables.longestWord = uint32_t(std::min<uint64_t>(longestWord, UINT32_MAX));
    return fillWordPiece(source, v, std::move(parts), tables);
  }

  llvm::Error fillMerges() {
    auto merges = readMerges();
    if (!merges)
      return merges.takeError();
    if (llvm::Error error = addMerges(source, "tokenizer.json", v, *merges, tables))
      return error;
    tables.patterns = pipeline.patterns;
    tables.covering = pipeline.covering;
    tables.addSpacePrefix = pipeline.spacePrefix;
    tables.spacePrefixOnce = pipeline.spacePrefixOnce;
    tables.spacePrefixSkips = pipeline.spacePrefixSkips;
    // Where every byte has a token nothing is unknown.
    tables.fuseUnknown = fuseUnknown && !byteFallback;
    tables.wholeWords = wholeWords;
    if (pipeline.byteLevel)
      return fillByteLevel();
    tables.splitSpaces = pipeline.splitSpaces;
    if (llvm::Error error = fillCharacters(source, v, byteFallback, tables))
      return error;
    return checkFallback();
  }

  // Bytes that occur in UTF-8 and have no token.
  unsigned missingBytes() const {
    unsigned count = 0;
    for (unsigned byte = 0; byte < 256; ++byte)
      count += tables.byteTokens[byte] < 0 && byte != 0xc0 && byte != 0xc1 && byte < 0xf5;
    return count;
  }

  llvm::Error checkFallback() {
    unsigned missing = missingBytes();
    if (missing == 0)
      return llvm::Error::success();
    // A character one of whose bytes has none is unknown as a whole.
    if (byteFallback)
      return wrong("the model falls back to bytes (byte_fallback), but {0} bytes of UTF-8 have no "
                   "token; add their tokens, or leave byte_fallback out",
                   missing);
    // Their neighbours would merge across them.
    if (v.unk < 0)
      return wrong("the model has neither an unk_token nor a token for each byte, so some texts "
                   "have no ids");
    return llvm::Error::success();
  }

  llvm::Error fillByteLevel() {
    tables.kind = izh::schema::TokenizerKind::ByteBpe;
    tables.byteCuts = pipeline.byteCuts;
    std::vector<uint32_t> words;
    fillByteTexts(v, tables, words);
    fillByteTokens(v, /*alphabet=*/true, tables);
    if (llvm::Error error = checkBytes())
      return error;
    return tables.wholeWords ? fillSlots(words) : llvm::Error::success();
  }

  llvm::Error checkBytes() {
    unsigned missing = missingBytes();
    if (missing == 0)
      return llvm::Error::success();
    if (byteFallback)
      return wrong("{0} bytes have no token in the byte alphabet and would fall back to others "
                   "(byte_fallback), which izh doesn't do; add their tokens, or leave "
                   "byte_fallback out",
                   missing);
    if (!unknownText.empty() && v.unk < 0)
      return wrong(
          "the model's unk_token is {0}, which is no token, but {1} bytes have none either",
          quote(unknownText), missing);
    // Runs of what is unknown leave nothing behind where nothing stands for them.
    tables.fuseUnknown |= v.unk < 0;
    return llvm::Error::success();
  }

  llvm::Error fillSlots(llvm::ArrayRef<uint32_t> ids) {
    auto slots = buildTokenSlots(source, tables.texts, ids);
    if (!slots)
      return slots.takeError();
    tables.tokenSlots = std::move(*slots);
    return llvm::Error::success();
  }

  const ModelSource &source;
  const Json &root;
  TextChanger change;
  const Json *model = nullptr;
  bool unigram = false, wordPiece = false;
  bool byteFallback = false, fuseUnknown = false, wholeWords = false;
  std::optional<uint64_t> unknownId;
  std::string unknownText, inside;
  uint64_t longestWord = 0;
  JsonPipeline pipeline;
  // Of tables.changedSpecials.
  llvm::StringMap<uint32_t> changedIds;
  Vocabulary v;
  TokenizerTables tables;
};

} // namespace

llvm::Expected<std::vector<uint8_t>>
izhc::buildFromJson(const ModelSource &source, llvm::ArrayRef<uint8_t> bytes, TextChanger change) {
  auto root = parseJson((source.fileName() + "/tokenizer.json").str(), bytes);
  if (!root)
    return root.takeError();
  return JsonTokenizer(source, *root, change).run();
}
