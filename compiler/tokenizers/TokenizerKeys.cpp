// Byte-level tokens are written in the byte alphabet again. Where tokens of
// characters are merged by rank, the rank of the merge that makes a token is
// its score: higher for earlier ones.

#include "compiler/tokenizers/TokenizerKeys.h"
#include "compiler/import/ExportKeys.h"
#include "compiler/tokenizers/ByteAlphabet.h"
#include "compiler/tokenizers/PreTokenizer.h"
#include "runtime/schema/tokenizer_generated.h"
#include "llvm/ADT/STLExtras.h"

using namespace izhc;
using izh::schema::TokenizerKind;
using izh::schema::TokenType;

namespace {

class TokenizerExport {
public:
  explicit TokenizerExport(const izh::schema::Tokenizer &tokenizer) : tokenizer(tokenizer) {}

  std::vector<ExportKey> run() {
    bool bytes = tokenizer.kind() == TokenizerKind::ByteBpe;
    if (!bytes && tokenizer.kind() != TokenizerKind::ScoreBpe)
      return {};
    keys.push_back(exportText("tokenizer.ggml.model", bytes ? "gpt2" : "llama"));
    if (bytes && !addPreTokenizer())
      return {};
    addTokens(bytes);
    bytes ? addMerges() : addScores();
    addIds();
    keys.push_back(exportFlag("tokenizer.ggml.add_bos_token", tokenizer.add_bos()));
    keys.push_back(exportFlag("tokenizer.ggml.add_eos_token", tokenizer.add_eos()));
    keys.push_back(exportFlag("tokenizer.ggml.add_space_prefix", tokenizer.add_space_prefix()));
    return std::move(keys);
  }

private:
  // The first name under which files know these patterns.
  bool addPreTokenizer() {
    size_t count = tokenizer.patterns() ? tokenizer.patterns()->size() : 0;
    for (const PreTokenizer &entry : preTokenizers()) {
      bool same = entry.patterns.size() == count && entry.wholeWords == tokenizer.whole_words();
      for (size_t i = 0; same && i < count; ++i)
        same = toPcre2(entry.patterns[i]) == tokenizer.patterns()->Get(i)->str();
      if (!same)
        continue;
      keys.push_back(exportText("tokenizer.ggml.pre", entry.names.front()));
      return true;
    }
    return false;
  }

  std::string textOf(uint32_t token) const {
    const auto &offsets = *tokenizer.text_offsets();
    const uint8_t *text = tokenizer.text()->data();
    return std::string(text + offsets[token], text + offsets[token + 1]);
  }

  void addTokens(bool bytes) {
    uint32_t count = tokenizer.types()->size();
    std::vector<int32_t> types;
    for (uint32_t i = 0; i < count; ++i) {
      auto type = TokenType(tokenizer.types()->Get(i));
      types.push_back(int32_t(type));
      std::string text = textOf(i);
      if (bytes && type != TokenType::Control && type != TokenType::UserDefined) {
        std::string written;
        for (char byte : text)
          written += byteCharacter(uint8_t(byte));
        text = std::move(written);
      }
      texts.push_back(std::move(text));
    }
    keys.push_back(exportTexts("tokenizer.ggml.tokens", texts));
    keys.push_back(exportNumbers("tokenizer.ggml.token_type", types));
  }

  void addMerges() {
    std::vector<std::string> merges;
    if (tokenizer.merges())
      for (const izh::schema::Merge *merge : *tokenizer.merges())
        merges.push_back(texts[merge->left()] + " " + texts[merge->right()]);
    keys.push_back(exportTexts("tokenizer.ggml.merges", merges));
  }

  void addScores() {
    std::vector<float> scores(texts.size());
    if (tokenizer.scores() && tokenizer.scores()->size() == texts.size())
      llvm::copy(*tokenizer.scores(), scores.begin());
    if (const auto *merges = tokenizer.merges())
      for (uint32_t rank = merges->size(); rank-- > 0;)
        scores[merges->Get(rank)->result()] = -float(rank);
    keys.push_back(exportFloats("tokenizer.ggml.scores", scores));
  }

  void addIds() {
    const std::pair<const char *, int32_t> ids[] = {
        {"tokenizer.ggml.bos_token_id", tokenizer.bos()},
        {"tokenizer.ggml.eos_token_id", tokenizer.eos()},
        {"tokenizer.ggml.eot_token_id", tokenizer.eot()},
        {"tokenizer.ggml.unknown_token_id", tokenizer.unk()},
        {"tokenizer.ggml.padding_token_id", tokenizer.pad()},
    };
    for (auto [name, id] : ids)
      if (id >= 0)
        keys.push_back(exportNumber(name, uint32_t(id)));
  }

  const izh::schema::Tokenizer &tokenizer;
  std::vector<ExportKey> keys;
  std::vector<std::string> texts;
};

} // namespace

std::vector<ExportKey> izhc::tokenizerKeys(llvm::ArrayRef<uint8_t> section,
                                           llvm::StringRef chatTemplate) {
  if (section.empty())
    return {exportText("tokenizer.ggml.model", "no_vocab")};
  std::vector<ExportKey> keys = TokenizerExport(*izh::schema::GetTokenizer(section.data())).run();
  if (!keys.empty() && !chatTemplate.empty())
    keys.push_back(exportText("tokenizer.chat_template", chatTemplate));
  return keys;
}
