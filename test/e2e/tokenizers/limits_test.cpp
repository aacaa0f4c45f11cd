// Texts and vocabularies that were made to be slow: encoding takes time in
// proportion to the text, or the compiler says what it can't use.

#include "test/e2e/tokenizers/folder_tokenizer.h"
#include <ctime>
#include <gmock/gmock.h>

using namespace izhc;
using namespace izhc::test;
using testing::HasSubstr;

namespace {

constexpr size_t kTextBytes = 1 << 20;
// Many times what is needed, and a fraction of what the square of the text's
// length would take.
constexpr double kSeconds = 4;

std::string repeat(const std::string &part, size_t bytes = kTextBytes) {
  std::string text;
  while (text.size() + part.size() <= bytes)
    text += part;
  return text;
}

// Encodes with the tokenizer of tokenizer.json, in time.
Ids encodeInTime(const std::string &json, const std::string &text) {
  FolderFiles files;
  files.add("tokenizer.json", json);
  FolderTokenizer tokenizer(files);
  EXPECT_EQ(tokenizer.refusal, "");
  if (!tokenizer.refusal.empty())
    return {};
  std::clock_t begin = std::clock();
  Ids ids = tokenizer.encode(text);
  EXPECT_LT(double(std::clock() - begin) / CLOCKS_PER_SEC, kSeconds);
  return ids;
}

std::string list(size_t count, const std::function<std::string(size_t)> &entry) {
  std::string all;
  for (size_t i = 0; i < count; ++i)
    all += (i ? "," : "") + entry(i);
  return all;
}

// Byte-level, of the letters a to d and a space.
std::string bytesJson(const std::string &more, const std::string &added = "",
                      const std::string &merges = "") {
  return R"({"added_tokens": [)" + added + R"(], )" + more +
         R"("model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "d": 3, "Ġ": 4},
            "merges": [)" +
         merges + "]}}";
}

std::string splitBy(const std::string &pattern) {
  return R"("pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Split",
    "pattern": {"Regex": ")" +
         pattern + R"("}, "behavior": "Isolated"}, {"type": "ByteLevel", "use_regex": false}]},)";
}

constexpr char kBytes[] = R"("pre_tokenizer": {"type": "ByteLevel"},)";

std::string addedToken(size_t id, const std::string &text) {
  return R"({"id": )" + std::to_string(id) + R"(, "content": ")" + text + R"(", "special": true})";
}

std::string unigramJson(const std::string &pieces) {
  return R"({"pre_tokenizer": {"type": "Metaspace", "replacement": "▁"}, "model": {"type":
    "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], )" +
         pieces + "]}}";
}

std::string wordsJson(const std::string &pieces, unsigned longest) {
  return R"({"added_tokens": [], "pre_tokenizer": {"type": "BertPreTokenizer"}, "model": {"type":
    "WordPiece", "unk_token": "[UNK]", "max_input_chars_per_word": )" +
         std::to_string(longest) + R"(, "vocab": {"[UNK]": 0, )" + pieces + "}}}";
}

TEST(LimitsTest, PatternsLookAtNoPlaceAgainAndAgain) {
  // Every match of "a" looks for a "b" first, to the end of the text.
  for (const char *pattern : {"a*b|a", "(?:a|aa)*b|a", "a(?:ba)*c|a|b"}) {
    SCOPED_TRACE(pattern);
    std::string text = repeat("a");
    if (pattern[1] == '(')
      text = repeat("ab");
    EXPECT_EQ(encodeInTime(bytesJson(splitBy(pattern)), text).size(), text.size());
  }
  // What was no match from one place may be one from another.
  Ids mixed = encodeInTime(bytesJson(splitBy("a{50}b|a|c+d|c")), std::string(700, 'a') + "b" +
                                                                     std::string(600, 'a') +
                                                                     std::string(900, 'c') + "d");
  EXPECT_EQ(mixed.size(), 700u + 1 + 600 + 900 + 1);
}

TEST(LimitsTest, PatternsThatNoTableFollowsAreRefused) {
  for (const char *pattern :
       {"(?<!a)b*+c|a", R"((a+)\\1b|a)", R"(\\ba+)", "(?=ab)a", "(?:a|b)*a(?:a|b){20}", "("})
    EXPECT_THAT(refusalOf(bytesJson(splitBy(pattern))), HasSubstr("the pattern '")) << pattern;
  EXPECT_THAT(refusalOf(bytesJson(splitBy("a" + std::string(1 << 14, 'b')))),
              HasSubstr("16385 bytes"));
  std::string digits = R"("pre_tokenizer": {"type": "Sequence", "pretokenizers": [)" +
                       list(17, [](size_t) { return R"({"type": "Digits"})"; }) +
                       R"(, {"type": "ByteLevel", "use_regex": false}]},)";
  EXPECT_THAT(refusalOf(bytesJson(digits)), HasSubstr("17 patterns"));
  std::string steps = R"("normalizer": {"type": "Sequence", "normalizers": [)" +
                      list(17, [](size_t) { return R"({"type": "NFC"})"; }) + "]}," + kBytes;
  EXPECT_THAT(refusalOf(bytesJson(steps)), HasSubstr("17 steps"));
}

TEST(LimitsTest, SpecialTokensThatStartAlike) {
  std::string added =
      list(60, [](size_t i) { return addedToken(10 + i, std::string(i + 2, 'a')); });
  Ids ids = encodeInTime(bytesJson(kBytes, added), repeat("a", 61 * 1000 + 7));
  EXPECT_EQ(ids.size(), 1001u);
  EXPECT_EQ(ids.front(), 69);
  EXPECT_EQ(ids.back(), 15);
  added =
      list(20, [](size_t i) { return addedToken(10 + i, std::string(250, 'a') + char('b' + i)); });
  EXPECT_EQ(encodeInTime(bytesJson(kBytes, added), repeat("a")).size(), kTextBytes);
}

TEST(LimitsTest, ManySpecialTokensInOneText) {
  constexpr size_t kTokens = 60000;
  auto text = [](size_t i) { return "<" + std::to_string(i) + ">"; };
  std::string added = list(kTokens, [&](size_t i) { return addedToken(10 + i, text(i)); });
  std::string all;
  for (size_t i = 0; i < kTokens; ++i)
    all += text(kTokens - 1 - i);
  Ids ids = encodeInTime(bytesJson(kBytes, added), all);
  ASSERT_EQ(ids.size(), kTokens);
  EXPECT_EQ(ids[1], int32_t(10 + kTokens - 2));
}

TEST(LimitsTest, TokensThatTakeTooLongToLookForAreRefused) {
  std::string tooLong(257, 'a');
  auto chain = [](size_t i) { return std::string(i + 1, 'a'); };
  auto piece = [&](size_t i) { return R"([")" + chain(i) + R"(", -1])"; };
  auto word = [&](size_t i) { return R"("##)" + chain(i) + R"(": )" + std::to_string(i + 1); };
  for (const std::string &json : {unigramJson(R"([")" + tooLong + R"(", -1])"),
                                  wordsJson(R"(")" + tooLong + R"(": 1)", 1000000),
                                  bytesJson(kBytes, addedToken(10, tooLong))})
    EXPECT_THAT(refusalOf(json), HasSubstr("at most 256 bytes"));
  for (const std::string &json :
       {unigramJson(list(200, piece)), wordsJson(list(200, word), 1000000),
        bytesJson(kBytes, list(200, [&](size_t i) {
                    return addedToken(10 + i, std::string(i + 1, '<'));
                  }))})
    EXPECT_THAT(refusalOf(json), HasSubstr("more than 128 tokens are the start"));
  // The most that is allowed.
  std::string longest = R"(, [")" + std::string(256, 'a') + R"(", -1])";
  EXPECT_FALSE(encodeInTime(unigramJson(list(126, piece) + longest), repeat("a")).empty());
  // A word that is cut into its longest pieces, with a longer one that fails at each.
  std::string pieces = R"("a": 1, "##a": 2, "##)" + std::string(255, 'a') + R"(b": 3)";
  EXPECT_EQ(encodeInTime(wordsJson(pieces, 2000000), repeat("a")).size(), kTextBytes);
}

TEST(LimitsTest, MarksAreSortedInLongRunsToo) {
  // Above and below in turn: all below come first, both in their order.
  std::string acute = "\u0301", grave = "\u0300", below = "\u0316";
  std::string text, expected;
  constexpr size_t kMarks = 100000;
  for (size_t i = 0; i < kMarks; ++i)
    text += (i % 2 ? grave : acute) + below;
  for (size_t i = 0; i < kMarks; ++i)
    expected += below;
  for (size_t i = 0; i < kMarks; ++i)
    expected += i % 2 ? grave : acute;
  std::string bytes = R"("Ì": 5, "ģ": 6, "Ģ": 7, "ĸ": 8)";
  std::string json = bytesJson(std::string(R"("normalizer": {"type": "NFD"},)") + kBytes);
  json.insert(json.find(R"("Ġ": 4)"), bytes + ", ");
  FolderFiles files;
  files.add("tokenizer.json", json);
  FolderTokenizer tokenizer(files);
  ASSERT_EQ(tokenizer.refusal, "");
  std::clock_t begin = std::clock();
  Ids ids = tokenizer.encode("c" + text);
  EXPECT_LT(double(std::clock() - begin) / CLOCKS_PER_SEC, kSeconds);
  EXPECT_TRUE(tokenizer.decode(ids) == "c" + expected);
}

TEST(LimitsTest, StepsThatBlowTextsUpAreEnded) {
  std::string step =
      R"("normalizer": {"type": "Replace", "pattern": {"String": "a"}, "content": ")" +
      std::string(100, 'b') + R"("},)";
  FolderFiles files;
  files.add("tokenizer.json", bytesJson(step + kBytes));
  FolderTokenizer tokenizer(files);
  ASSERT_EQ(tokenizer.refusal, "");
  EXPECT_THAT(tokenizer.failure(repeat("a")), HasSubstr("at most"));
  EXPECT_EQ(tokenizer.encode("ca").size(), 101u);
}

TEST(LimitsTest, LongWordsAreMergedInTime) {
  std::string json = bytesJson(kBytes, "", R"("a a", "aa aa", "aaaa aaaa")");
  json.insert(json.find(R"("Ġ": 4)"), R"("aa": 5, "aaaa": 6, "aaaaaaaa": 7, )");
  EXPECT_EQ(encodeInTime(json, repeat("a")).size(), kTextBytes / 8);
}

} // namespace
