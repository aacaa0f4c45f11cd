// From a model's metadata to token ids and back: the compiler's section read by
// the runtime. A small vocabulary always; those of IZH_SHARED, with ids from
// another implementation, where that is set.

#include "compiler/tokenizers/Tokenizers.h"
#include "test/e2e/tokenizers/built_tokenizer.h"
#include "test/unit/compiler/tokenizers/fake_source.h"
#include "tools/izhc/ChangedText.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cstdlib>

using namespace izhc;
using namespace izhc::test;

namespace {

class Both : public BuiltTokenizer {
public:
  explicit Both(const ModelSource &source) {
    std::string problem = open(cantFail(buildTokenizer(source, tool::changeText)));
    if (!problem.empty()) {
      ADD_FAILURE() << problem;
      abort();
    }
  }

  Ids encode(llvm::StringRef text, bool special = false) const {
    return BuiltTokenizer::encode(text, false, special);
  }
};

TEST(TokenizersE2eTest, SplitsAndMergesASmallVocabulary) {
  FakeSource source =
      byteSource({"th", "the", "Ġthe", "Ġt", "12", "'s"}, {"t h", "th e", "Ġ the", "1 2", "' s"});
  source.values["tokenizer.ggml.pre"] = "smollm";
  Both both(source);
  // Digits stand alone for this pre-tokenizer, spaces go with the word.
  EXPECT_EQ(both.encode("the the 12's"), (Ids{257, 258, ' ', '1', '2', 261}));
  EXPECT_EQ(both.decode({257, 258, ' ', '1', '2', 261}), "the the 12's");
}

// U+180E was a space once, U+0085 is one: \s follows today's Unicode.
TEST(TokenizersE2eTest, KnowsTheSpacesOfUnicode) {
  FakeSource source = byteSource({"Ġa"}, {"Ġ a"});
  Both both(source);
  // Two spaces before a letter: the first is a word of its own.
  EXPECT_EQ(both.encode("\xc2\x85 a"), (Ids{0xc2, 0x85, 256}));
  // No space: it takes the space before it, and the letter is left alone.
  EXPECT_EQ(both.encode(" \xe1\xa0\x8e"
                        "a"),
            (Ids{' ', 0xe1, 0xa0, 0x8e, 'a'}));
}

TEST(TokenizersE2eTest, ChoosesPiecesByTheirScores) {
  FakeSource source = scoreSource({"▁a", "▁", "a", "b", "ab", "<ud>"});
  source.values["tokenizer.ggml.model"] = "t5";
  source.values["tokenizer.ggml.token_type"] = std::vector<int64_t>{2, 3, 3, 1, 1, 1, 1, 1, 4};
  source.values["tokenizer.ggml.scores"] =
      std::vector<float>{0, 0, 0, -1, -1.5f, -2, -2, -1.25f, 0};
  source.values["tokenizer.ggml.unknown_token_id"] = 0;
  source.values["tokenizer.ggml.remove_extra_whitespaces"] = true;
  Both both(source);
  // "▁", "ab" is -2.75, "▁a", "b" is -3.
  EXPECT_EQ(both.encode(" ab   a "), (Ids{4, 7, 3}));
  // What is unknown is one token, whatever its length.
  EXPECT_EQ(both.encode("acdea"), (Ids{3, 0, 5}));
  EXPECT_EQ(both.encode("a<ud>a"), (Ids{3, 8, 3}));
  EXPECT_EQ(both.encode("   "), (Ids{}));
  EXPECT_EQ(both.decode({4, 7, 3}), "ab a");
}

TEST(TokenizersE2eTest, CutsWordsIntoTheLongestPieces) {
  FakeSource source = scoreSource({"▁the", "re", "▁,", "▁r", "e", "▁好"});
  source.values["tokenizer.ggml.model"] = "bert";
  source.values["tokenizer.ggml.unknown_token_id"] = 0;
  source.values["tokenizer.ggml.bos_token_id"] = 1;
  source.values["tokenizer.ggml.seperator_token_id"] = 2;
  Both both(source);
  EXPECT_EQ(both.encode("The RÉ,there"), (Ids{3, 6, 7, 5, 3, 4}));
  // One piece that fails makes the word unknown.
  EXPECT_EQ(both.encode("thex 好好"), (Ids{0, 8, 8}));
  EXPECT_EQ(both.decode({3, 6, 7, 5}), "the re ,");
  source.values["tokenizer.ggml.normalizer.lowercase"] = false;
  EXPECT_EQ(Both(source).encode("The re"), (Ids{0, 6, 7}));
}

const char *shared() { return std::getenv("IZH_SHARED"); }

std::string read(const std::string &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer) {
    ADD_FAILURE() << path << ": " << buffer.getError().message();
    return "";
  }
  return (*buffer)->getBuffer().str();
}

Ids toIds(const llvm::json::Array &array) {
  Ids ids;
  for (const llvm::json::Value &value : array)
    ids.push_back(int32_t(*value.getAsInteger()));
  return ids;
}

struct Case {
  std::string text;
  Ids ids;
};

// NAME.inp and NAME.out, then nasty.json.
std::vector<Case> readCases(const std::string &folder, const std::string &name) {
  std::vector<Case> cases;
  std::string texts = read(folder + name + ".inp"), lines = read(folder + name + ".out");
  llvm::StringRef textsLeft = texts, linesLeft = lines;
  while (!linesLeft.empty() || !textsLeft.empty()) {
    auto [text, textsAfter] = textsLeft.split("\n__ggml_vocab_test__\n");
    auto [line, linesAfter] = linesLeft.split('\n');
    textsLeft = textsAfter;
    linesLeft = linesAfter;
    Ids ids;
    llvm::SmallVector<llvm::StringRef> words;
    line.split(words, ' ', -1, false);
    for (llvm::StringRef word : words)
      word.getAsInteger(10, ids.emplace_back());
    cases.push_back({text.str(), ids});
  }
  llvm::json::Value nasty = cantFail(llvm::json::parse(read(folder + "nasty.json")));
  const llvm::json::Array *nastyTexts = nasty.getAsObject()->getArray("texts");
  const llvm::json::Array *nastyIds = nasty.getAsObject()->getObject("ids")->getArray(name);
  for (size_t i = 0; i < nastyTexts->size(); ++i)
    cases.push_back({(*nastyTexts)[i].getAsString()->str(), toIds(*(*nastyIds)[i].getAsArray())});
  return cases;
}

class SharedVocabularies : public testing::TestWithParam<const char *> {};

TEST_P(SharedVocabularies, EncodeAndDecodeEveryText) {
  if (!shared())
    GTEST_SKIP() << "IZH_SHARED is not set";
  std::string folder = std::string(shared()) + "/vocabs/";
  auto source = cantFail(openModel(folder + GetParam() + ".gguf"));
  Both both(*source);
  std::vector<Case> cases = readCases(folder, GetParam());
  EXPECT_GE(cases.size(), 76u);
  for (const Case &c : cases) {
    EXPECT_EQ(both.encode(c.text), c.ids) << c.text;
    EXPECT_EQ(both.decode(c.ids), c.text);
  }
}

INSTANTIATE_TEST_SUITE_P(All, SharedVocabularies,
                         testing::Values("llama-bpe", "llama-spm", "phi-3", "qwen2", "gpt-2",
                                         "deepseek-coder", "falcon", "mpt", "starcoder", "refact"));

TEST(SharedVocabulariesTest, AskForAPreTokenizerWhereNoneIsNamed) {
  if (!shared())
    GTEST_SKIP() << "IZH_SHARED is not set";
  auto source = cantFail(openModel(std::string(shared()) + "/vocabs/gpt-neox.gguf"));
  auto section = buildTokenizer(*source, tool::changeText);
  ASSERT_FALSE(bool(section));
  EXPECT_NE(toString(section.takeError()).find("--pre-tokenizer"), std::string::npos);
}

} // namespace
