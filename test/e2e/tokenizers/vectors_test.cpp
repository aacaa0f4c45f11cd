// Tokenizers of model folders against ids that the libraries which made them
// gave.

#include "test/e2e/tokenizers/tokenizer_vectors.h"

using namespace izhc;
using namespace izhc::test;

namespace {

class Vectors : public testing::TestWithParam<const char *> {};

TEST_P(Vectors, EveryTextHasTheIdsOfTheLibrary) {
  TokenizerVectors vectors(GetParam());
  BuiltTokenizer tokenizer;
  ASSERT_EQ(tokenizer.open(vectors.section), "");
  std::string all;
  for (size_t i = 0; i < vectors.texts.size(); ++i) {
    EXPECT_EQ(tokenizer.encode(vectors.texts[i], false, vectors.special), vectors.ids[i])
        << "'" << vectors.texts[i] << "'";
    all += vectors.texts[i];
  }
  // Long enough for the cache of words, twice over: it changes nothing.
  std::string longText;
  while (longText.size() < 20000)
    longText += " " + all;
  Ids once = tokenizer.encode(longText, false, vectors.special);
  EXPECT_EQ(tokenizer.encode(longText, false, vectors.special), once);
}

INSTANTIATE_TEST_SUITE_P(
    All, Vectors,
    testing::Values("pieces-mapped", "pieces-bytes", "pieces-user", "pieces-bpe", "unigram-plain",
                    "unigram-split", "unigram-steps", "words", "words-cased", "words-accents",
                    "bytes-nfc", "bytes-nfd", "bytes-nfkc", "bytes-nfkd", "characters-added",
                    "bytes-added", "bytes-behind", "bytes-singles", "characters-words",
                    "bytes-words", "unigram-words", "words-added", "words-under", "words-plain"));

} // namespace
