// Byte-level tokens are written in the byte alphabet again. Where tokens of
// characters are merged by rank, the rank of the merge that makes a token is
// its score: higher for earlier ones.

#include "compiler/tokenizers/TokenizerKeys.h"
#include "compiler/import/ExportKeys.h"
#include "compiler/support/Error.h"
#include "compiler/tokenizers/ByteAlphabet.h"
#include "compiler/tokenizers/PreTokenizer.h"
#include "compiler/tokenizers/TokenizerTables.h"
#include "runtime/schema/byte_trie.h"
#include "llvm/ADT/STLExtras.h"

using namespace izhc;
using izh::schema::NormalStepKind;
using izh::schema::TokenizerKind;
using izh::schema::TokenType;

namespace {

constexpr llvm::StringLiteral kSpace("\xe2\x96\x81");

class TokenizerExport {
public:
  explicit TokenizerExport(const izh::schema::Tokenizer &tokenizer) : tokenizer(tokenizer) {}

  llvm::Expected<std::vector<ExportKey>> run() {
    if (const auto *strips = tokenizer.strips())
      if (llvm::any_of(*strips, [](uint8_t rule) { return rule & 4; }))
        return makeError("has tokens that must be whole words");
    if (llvm::Error error = addKind())
      return std::move(error);
    addIds();
    keys.push_back(exportFlag("tokenizer.ggml.add_bos_token", tokenizer.add_bos()));
    keys.push_back(exportFlag("tokenizer.ggml.add_eos_token", tokenizer.add_eos()));
    keys.push_back(exportFlag("tokenizer.ggml.add_space_prefix", tokenizer.add_space_prefix()));
    return std::move(keys);
  }

private:
  // Its model, tokens, and what the kind has beside them.
  llvm::Error addKind() {
    auto name = [&](llvm::StringRef model) {
      keys.push_back(exportText("tokenizer.ggml.model", model));
    };
    switch (tokenizer.kind()) {
    case TokenizerKind::ByteBpe:
      name("gpt2");
      if (!addPreTokenizer())
        return makeError("cuts texts by patterns that have no name there");
      addTokens();
      addMerges();
      return llvm::Error::success();
    case TokenizerKind::ScoreBpe:
      name("llama");
      addTokens();
      addScores();
      return llvm::Error::success();
    case TokenizerKind::Unigram:
      name("t5");
      return addUnigram();
    default:
      name("bert");
      return addWordPiece();
    }
  }

  llvm::SmallVector<const izh::schema::NormalStep *> steps() const {
    llvm::SmallVector<const izh::schema::NormalStep *> all;
    if (tokenizer.normal_steps())
      all.append(tokenizer.normal_steps()->begin(), tokenizer.normal_steps()->end());
    return all;
  }

  // Files of this kind have a map of characters, and drop all spaces but single ones
  // between words or none.
  llvm::Error addUnigram() {
    auto left = steps();
    if (!left.empty() && (left[0]->kind() == NormalStepKind::Charsmap ||
                          left[0]->kind() == NormalStepKind::CharsmapGraphemes)) {
      keys.push_back(exportBytes("tokenizer.ggml.precompiled_charsmap",
                                 llvm::ArrayRef(left[0]->from()->data(), left[0]->from()->size())));
      left.erase(left.begin());
    }
    bool merges = false, stripsLeft = false, stripsRight = false;
    for (const izh::schema::NormalStep *step : left) {
      NormalStepKind kind = step->kind();
      merges |= kind == NormalStepKind::ReplaceSpaces;
      stripsLeft |= kind == NormalStepKind::StripLeft;
      stripsRight |= kind == NormalStepKind::StripRight;
      // These make spaces of what is none, and one mark of two.
      if (!llvm::is_contained({NormalStepKind::ReplaceSpaces, NormalStepKind::StripLeft,
                               NormalStepKind::StripRight, NormalStepKind::Blanks,
                               NormalStepKind::Replace},
                              kind))
        return makeError("changes texts by more than a map of characters");
    }
    if (llvm::any_of(*tokenizer.byte_tokens(), [](int32_t id) { return id >= 0; }))
      return makeError("has tokens of bytes for characters that are no pieces, which readers of "
                       "such files make unknown tokens of");
    bool drops = merges && stripsLeft && stripsRight;
    if (!left.empty() && !drops)
      return makeError("drops some spaces and keeps others");
    if (!drops && tokenizer.add_space_prefix() && tokenizer.space_prefix_skips())
      return makeError("puts a space before texts only where there is none");
    if (tokenizer.user_defined_inside() &&
        llvm::is_contained(*tokenizer.types(), uint8_t(TokenType::UserDefined)))
      return makeError("has user-defined pieces that compete with others");
    keys.push_back(exportFlag("tokenizer.ggml.remove_extra_whitespaces", drops));
    addTokens();
    addScores();
    return llvm::Error::success();
  }

  // Files of this kind say whether letters lose case and accents.
  llvm::Error addWordPiece() {
    bool found = false;
    for (bool lowercase : {false, true})
      for (bool accents : {false, true}) {
        TokenizerTables wanted;
        addBertSteps({true, true, accents, lowercase}, wanted);
        auto same = [](const TextStep &a, const izh::schema::NormalStep *b) {
          return a.kind == b->kind();
        };
        auto all = steps();
        if (!std::equal(wanted.steps.begin(), wanted.steps.end(), all.begin(), all.end(), same))
          continue;
        keys.push_back(exportFlag("tokenizer.ggml.normalizer.lowercase", lowercase));
        keys.push_back(exportFlag("tokenizer.ggml.normalizer.strip_accents", accents));
        found = true;
      }
    if (!found)
      return makeError("changes texts in another way than BERT's tokenizers do");
    if (tokenizer.longest_word() != 100)
      return makeError("knows words of up to {0} characters, where others know 100",
                       tokenizer.longest_word());
    for (uint32_t i = 0; i < tokenizer.types()->size(); ++i)
      if (TokenType(tokenizer.types()->Get(i)) == TokenType::Normal && isBoth(textOf(i), i))
        return makeError("has tokens that both begin words and go on with them, or that look as "
                         "if they began words there, such as {0}",
                         quote(textOf(i)));
    addTokens();
    if (tokenizer.eos() >= 0)
      keys.push_back(exportNumber("tokenizer.ggml.seperator_token_id", uint32_t(tokenizer.eos())));
    return llvm::Error::success();
  }

  // Whether a token that begins words, with a space here, would be taken for another
  // with U+2581 before it, or goes on with words too.
  bool isBoth(llvm::StringRef text, uint32_t id) const {
    if (text.starts_with(kSpace))
      return true;
    if (!text.consume_front(" "))
      return false;
    const izh::schema::TrieUnit *trie = tokenizer.pieces()->data();
    izh::schema::TrieUnit unit = trie[0];
    for (char byte : text)
      unit = unit ? izh::schema::child_of(trie, unit, uint8_t(byte)) : 0;
    return unit && izh::schema::value_of(unit) == int32_t(id);
  }

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

  void addTokens() {
    bool bytes = tokenizer.kind() == TokenizerKind::ByteBpe;
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
      // A space begins a word.
      if (tokenizer.byte_marks() && type == TokenType::Normal && text.starts_with(' '))
        text.replace(0, 1, kSpace.str());
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

llvm::Expected<std::vector<ExportKey>> izhc::tokenizerKeys(llvm::ArrayRef<uint8_t> section,
                                                           llvm::StringRef chatTemplate) {
  if (section.empty())
    return std::vector<ExportKey>{exportText("tokenizer.ggml.model", "no_vocab")};
  auto keys = TokenizerExport(*izh::schema::GetTokenizer(section.data())).run();
  if (keys && !chatTemplate.empty())
    keys->push_back(exportText("tokenizer.chat_template", chatTemplate));
  return keys;
}
