// Reading a vocabulary: every array must be as long as the list of tokens and
// every id must be in it, so that what follows can index freely.

#include "compiler/tokenizers/Vocabulary.h"
#include "compiler/support/Error.h"
#include "runtime/schema/tokenizer_generated.h"
#include "runtime/schema/tokenizer_hash.h"
#include <cmath>

using namespace izhc;

namespace {

// Slots of the look-up tables have 24 bits for a token.
constexpr uint64_t kMaxTokens = izh::schema::kSlotValue;

template <typename T>
llvm::Error checkLength(const ModelSource &source, const char *key, const std::vector<T> &values,
                        size_t tokens) {
  if (values.size() == tokens)
    return llvm::Error::success();
  return makeError("{0}: {1} has {2} entries, but there are {3} tokens", source.fileName(), key,
                   values.size(), tokens);
}

llvm::Error readTexts(const ModelSource &source, Vocabulary &v) {
  auto texts = source.requireStringArray("tokenizer.ggml.tokens");
  if (!texts)
    return texts.takeError();
  v.texts = std::move(*texts);
  if (v.texts.empty() || v.texts.size() >= kMaxTokens)
    return makeError("{0}: tokenizer.ggml.tokens has {1} entries, expected 1 to {2}",
                     source.fileName(), v.texts.size(), kMaxTokens - 1);
  v.ids.reserve(unsigned(v.texts.size()));
  for (size_t i = 0; i < v.texts.size(); ++i)
    if (!v.texts[i].empty())
      v.ids.try_emplace(llvm::CachedHashStringRef(v.texts[i]), uint32_t(i));
  return llvm::Error::success();
}

llvm::Error readTypes(const ModelSource &source, Vocabulary &v) {
  const char *key = "tokenizer.ggml.token_type";
  auto types = source.getIntArray(key);
  if (!types)
    return types.takeError();
  v.types.assign(v.size(), uint8_t(izh::schema::TokenType::Normal));
  if (!*types)
    return llvm::Error::success();
  if (llvm::Error error = checkLength(source, key, **types, v.size()))
    return error;
  for (size_t i = 0; i < v.size(); ++i) {
    int64_t type = (**types)[i];
    if (type < 0 || type > int64_t(izh::schema::TokenType::MAX))
      return makeError("{0}: {1} of token {2} is {3}, expected 0 to {4}", source.fileName(), key, i,
                       type, int(izh::schema::TokenType::MAX));
    v.types[i] = uint8_t(type);
  }
  return llvm::Error::success();
}

llvm::Error readScores(const ModelSource &source, Vocabulary &v) {
  const char *key = "tokenizer.ggml.scores";
  auto scores = source.getFloatArray(key);
  if (!scores)
    return scores.takeError();
  if (!*scores)
    return llvm::Error::success();
  if (llvm::Error error = checkLength(source, key, **scores, v.size()))
    return error;
  for (size_t i = 0; i < v.size(); ++i)
    if (std::isnan((**scores)[i]))
      return makeError("{0}: {1} of token {2} is not a number", source.fileName(), key, i);
  v.scores = std::move(**scores);
  return llvm::Error::success();
}

llvm::Error readId(const ModelSource &source, const char *key, size_t tokens, int32_t &id) {
  auto value = source.getUInt(key);
  if (!value)
    return value.takeError();
  if (!*value)
    return llvm::Error::success();
  if (**value >= tokens)
    return makeError("{0}: {1} is {2}, but the last token is {3}", source.fileName(), key, **value,
                     tokens - 1);
  id = int32_t(**value);
  return llvm::Error::success();
}

llvm::Error readIds(const ModelSource &source, Vocabulary &v) {
  int32_t eom = -1, fimPad = -1, fimRepository = -1, fimSeparator = -1;
  const std::pair<const char *, int32_t *> keys[] = {
      {"tokenizer.ggml.bos_token_id", &v.bos},
      {"tokenizer.ggml.eos_token_id", &v.eos},
      {"tokenizer.ggml.eot_token_id", &v.eot},
      {"tokenizer.ggml.eom_token_id", &eom},
      {"tokenizer.ggml.unknown_token_id", &v.unk},
      {"tokenizer.ggml.padding_token_id", &v.pad},
      {"tokenizer.ggml.fim_pad_token_id", &fimPad},
      {"tokenizer.ggml.fim_rep_token_id", &fimRepository},
      {"tokenizer.ggml.fim_sep_token_id", &fimSeparator},
  };
  for (auto [key, id] : keys)
    if (llvm::Error error = readId(source, key, v.size(), *id))
      return error;
  // A model that reaches one of these in ordinary text has left it.
  for (int32_t id : {v.eos, v.eot, eom, fimPad, fimRepository, fimSeparator})
    if (id >= 0)
      v.ends.push_back(uint32_t(id));
  return llvm::Error::success();
}

llvm::Error readFlags(const ModelSource &source, Vocabulary &v) {
  const std::pair<const char *, std::optional<bool> *> keys[] = {
      {"tokenizer.ggml.add_bos_token", &v.addBos},
      {"tokenizer.ggml.add_eos_token", &v.addEos},
      {"tokenizer.ggml.add_space_prefix", &v.addSpacePrefix},
  };
  for (auto [key, flag] : keys) {
    auto value = source.getBool(key);
    if (!value)
      return value.takeError();
    *flag = *value;
  }
  return llvm::Error::success();
}

} // namespace

llvm::Expected<Vocabulary> izhc::readVocabulary(const ModelSource &source) {
  Vocabulary v;
  for (auto *read : {readTexts, readTypes, readScores, readIds, readFlags})
    if (llvm::Error error = read(source, v))
      return std::move(error);
  return std::move(v);
}
