// Tokenizers of model folders against ids that the libraries which made them
// gave (vectors/, written by make_vectors.py).

#include "compiler/tokenizers/Tokenizers.h"
#include "runtime/text/tokenizer.h"
#include "test/unit/compiler/import/folder_files.h"
#include "tools/izhc/ChangedText.h"
#include "llvm/Support/Base64.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include <gtest/gtest.h>

using namespace izhc;
using namespace izhc::test;

namespace {

using Ids = std::vector<int64_t>;

class Vectors : public testing::TestWithParam<const char *> {};

Ids encode(const izh::Tokenizer &tokenizer, llvm::StringRef text, bool special) {
  izh::Array<int32_t> ids;
  izh_error error{};
  EXPECT_EQ(tokenizer.encode(text.data(), text.size(), {false, special}, &ids, &error), IZH_OK)
      << error.message;
  return {ids.begin(), ids.end()};
}

TEST_P(Vectors, EveryTextHasTheIdsOfTheLibrary) {
  std::string path =
      std::string(IZH_SOURCE_DIR) + "/test/e2e/tokenizers/vectors/" + GetParam() + ".json";
  auto file = llvm::MemoryBuffer::getFile(path);
  ASSERT_TRUE(bool(file)) << path;
  auto parsed = llvm::cantFail(llvm::json::parse((*file)->getBuffer()));
  const llvm::json::Object &root = *parsed.getAsObject();
  FolderFiles files;
  files.add("config.json", "{}");
  for (const auto &[name, content] : *root.getObject("files")) {
    llvm::StringRef text = *content.getAsString();
    std::vector<char> bytes(text.begin(), text.end());
    if (name == "tokenizer.model")
      llvm::cantFail(llvm::decodeBase64(text, bytes));
    files.add(llvm::StringRef(name).str(), Bytes(bytes.begin(), bytes.end()));
  }
  auto source = llvm::cantFail(files.open());
  auto section = llvm::cantFail(buildTokenizer(*source, tool::changeText));
  izh::Tokenizer *tokenizer = nullptr;
  izh_error error{};
  ASSERT_EQ(izh::Tokenizer::create(section.data(), section.size(), &tokenizer, &error), IZH_OK)
      << error.message;
  // One library looks for special tokens in a text, the other doesn't.
  bool special = root.getObject("files")->get("tokenizer.json") != nullptr;
  const llvm::json::Array &texts = *root.getArray("texts"), &ids = *root.getArray("ids");
  ASSERT_EQ(texts.size(), ids.size());
  std::string all;
  for (size_t i = 0; i < texts.size(); ++i) {
    Ids expected;
    for (const llvm::json::Value &id : *ids[i].getAsArray())
      expected.push_back(*id.getAsInteger());
    EXPECT_EQ(encode(*tokenizer, *texts[i].getAsString(), special), expected)
        << "'" << texts[i].getAsString()->str() << "'";
    all += texts[i].getAsString()->str();
  }
  // Long enough for the cache of words, twice over: it changes nothing.
  std::string longText;
  while (longText.size() < 20000)
    longText += " " + all;
  Ids once = encode(*tokenizer, longText, special);
  EXPECT_EQ(encode(*tokenizer, longText, special), once);
  izh::Tokenizer::destroy(tokenizer);
}

INSTANTIATE_TEST_SUITE_P(
    All, Vectors,
    testing::Values("pieces-mapped", "pieces-bytes", "pieces-user", "pieces-bpe", "unigram-plain",
                    "unigram-split", "unigram-steps", "words", "words-cased", "words-accents",
                    "bytes-nfc", "bytes-nfd", "bytes-nfkc", "bytes-nfkd", "characters-added",
                    "bytes-added", "bytes-behind", "bytes-singles", "characters-words",
                    "bytes-words", "unigram-words", "words-added", "words-under", "words-plain"));

} // namespace
