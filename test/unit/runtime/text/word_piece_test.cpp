// WordPiece over sections without byte_marks, as files from before have them: what
// begins a word has U+2581 before it. (The compiler's own are tested in e2e.)

#include <gmock/gmock.h>

#include "test/unit/runtime/text/tokenizer_builder.h"

namespace izh_test {
namespace {

using testing::ElementsAre;

TEST(WordPieceTest, ReadsTheMarksOfOlderFiles) {
  TokenizerBuilder builder(izh::schema::TokenizerKind::WordPiece);
  builder.tables.unk = static_cast<int32_t>(builder.add("[UNK]", TokenType::Unknown));
  builder.tables.byte_tokens.assign(256, -1);
  builder.tables.patterns = {R"([^\s]+)"};
  builder.tables.add_space_prefix = true;
  builder.add("\u2581a");
  builder.add("b");
  builder.add("\u2581abc");
  const OwnedTokenizer tokenizer(builder);
  EXPECT_THAT(tokenizer.encode("ab abb abc"), ElementsAre(1, 2, 1, 2, 2, 3));
  // What goes on with words begins none, and the mark is no part of a text.
  EXPECT_THAT(tokenizer.encode("b a\u2581a"), ElementsAre(0, 0));
  EXPECT_EQ(tokenizer.decode({1, 2, 3}), "ab abc");
}

}  // namespace
}  // namespace izh_test
