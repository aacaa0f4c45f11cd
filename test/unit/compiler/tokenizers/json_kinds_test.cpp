// What tokenizer files say in another kind than readers ask for is told.

#include "compiler/tokenizers/JsonKinds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace izhc;
using testing::HasSubstr;

static std::string refusal(llvm::StringRef text, bool deep = true) {
  auto json = parseJson("t.json", {text.bytes_begin(), text.size()});
  if (!json)
    return llvm::toString(json.takeError());
  return llvm::toString(checkKinds("t.json", *json, deep));
}

TEST(JsonKindsTest, NamesThePlaceAndWhatIsExpected) {
  EXPECT_THAT(refusal(R"({"added_tokens": [{"id": 1}, {"id": 2, "lstrip": 1}]})"),
              HasSubstr("t.json: 'added_tokens[1].lstrip' is 1, expected true or false"));
  EXPECT_THAT(refusal(R"({"pre_tokenizer": {"type": "Sequence", "pretokenizers": [
                          {"type": "ByteLevel", "use_regex": "no"}]}})"),
              HasSubstr("'pre_tokenizer.pretokenizers[0].use_regex' is 'no'"));
  EXPECT_THAT(refusal(R"({"model": {"byte_fallback": 0}})"),
              HasSubstr("'model.byte_fallback' is 0"));
  EXPECT_THAT(refusal(R"({"normalizer": {"type": 5}})"), HasSubstr("expected a string"));
  EXPECT_THAT(refusal(R"({"bos_token": 5})"), HasSubstr("expected a string or an object"));
}

TEST(JsonKindsTest, TakesNullForAbsentAndLeavesTokensAlone) {
  EXPECT_EQ(refusal(R"({"normalizer": null, "model": {"unk_token": null, "byte_fallback": true,
                        "vocab": {"type": 0, "split": 1}, "merges": ["type split"]},
                        "post_processor": {"special_tokens": {"type": {"ids": [0]}}}})"),
            "");
  EXPECT_EQ(refusal(R"([5])"), "");
}

TEST(JsonKindsTest, LooksAtTheFirstLevelOnlyWhereAsked) {
  EXPECT_EQ(refusal(R"({"other": {"type": 5}})", false), "");
  EXPECT_NE(refusal(R"({"type": 5})", false), "");
}
