// Tokenizers of model folders: tokenizer.json and tokenizer.model through the
// compiler and the runtime, on small vocabularies whose ids are worked out by
// hand.

#include "compiler/tokenizers/ChatTemplate.h"
#include "test/e2e/tokenizers/folder_tokenizer.h"
#include <gmock/gmock.h>

using namespace izhc;
using namespace izhc::test;
using testing::HasSubstr;

namespace {

// Byte-level: a few letters, merges, and what is around them.
std::string byteLevelJson(const std::string &steps, const std::string &more = "") {
  return R"({"added_tokens": [{"id": 10, "content": "<|end|>", "special": true},
                              {"id": 11, "content": "  ", "special": false}],
    "pre_tokenizer": )" +
         steps + R"(, "decoder": {"type": "ByteLevel"}, )" + more + R"(
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "Ġ": 2, "1": 3, "ab": 4, "Ġab": 5, "11": 6,
      "Ã": 7, "¤": 8, "Ã¤": 9, "<": 12, "/": 13, "s": 14, ">": 15, "</s>": 16}, "merges": ["a b", ["Ġ", "ab"], "1 1", "Ã ¤"]}})";
}

constexpr char kDigitsThenBytes[] = R"({"type": "Sequence", "pretokenizers": [
  {"type": "Digits", "individual_digits": true},
  {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true}]})";

// Characters with spaces as U+2581 and bytes where there is no character.
std::string characterJson(const std::string &normalizer, const std::string &steps) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) {
    char entry[32];
    snprintf(entry, sizeof(entry), ", \"<0x%02X>\": %d", i, 20 + i);
    bytes += entry;
  }
  return R"({"added_tokens": [{"id": 1, "content": "<s>", "special": true}], "normalizer": )" +
         normalizer + R"(, "pre_tokenizer": )" + steps +
         R"(, "post_processor": {"type": "TemplateProcessing", "single": [
           {"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}]},
         "model": {"type": "BPE", "unk_token": "<unk>", "byte_fallback": true, "vocab": {"<unk>": 0,
           "<s>": 1, "▁": 2, "a": 3, "b": 4, "▁a": 5, "ab": 6, "▁ab": 7, "▁▁": 8)" +
         bytes + R"(}, "merges": ["a b", "▁ ab", "▁ a", "▁ ▁"]}})";
}

constexpr char kPrepend[] = R"({"type": "Sequence", "normalizers": [
  {"type": "Prepend", "prepend": "▁"},
  {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]})";

TEST(FolderTokenizerTest, MergesBytesOfWords) {
  FolderFiles files;
  files.add("tokenizer.json", byteLevelJson(kDigitsThenBytes));
  FolderTokenizer t(files);
  ASSERT_EQ(t.refusal, "");
  EXPECT_EQ(t.encode("ab ab11"), (Ids{4, 5, 3, 3}));
  EXPECT_EQ(t.encode("äb<|end|>a"), (Ids{9, 1, 10, 0}));
  // Well known elsewhere, but no special token of this file.
  EXPECT_EQ(t.encode("</s>"), (Ids{12, 13, 14, 15}));
  EXPECT_EQ(t.encode("a  b"), (Ids{0, 11, 1}));
  EXPECT_EQ(t.decode({4, 5, 7, 8, 10}), "ab abä<|end|>");
}

TEST(FolderTokenizerTest, TokensTakeTheBlanksBesideThem) {
  FolderFiles files;
  files.add("tokenizer.json",
            R"({"added_tokens": [{"id": 3, "content": "<l>", "special": true, "lstrip": true},
                                 {"id": 4, "content": "<r>", "special": true, "rstrip": true}],
                "pre_tokenizer": {"type": "ByteLevel"}, "model": {"type": "BPE",
                "vocab": {"a": 0, "b": 1, "Ġ": 2}, "merges": []}})");
  FolderTokenizer t(files);
  ASSERT_EQ(t.refusal, "");
  EXPECT_EQ(t.encode("a \n<l> b<r>\t a <r>  "), (Ids{0, 3, 2, 1, 4, 0, 2, 4}));
  // All white space of Unicode.
  EXPECT_EQ(t.encode("a\u2003\u00a0<l>b<r>\u3000\u0085a"), (Ids{0, 3, 1, 4, 0}));
}

TEST(FolderTokenizerTest, CutsByThePatternOfTheFile) {
  FolderFiles files;
  files.add("tokenizer.json",
            byteLevelJson(R"({"type": "Sequence", "pretokenizers": [
              {"type": "Split", "pattern": {"Regex": "\\p{N}{2}| ?\\p{L}+"}, "behavior": "Isolated"},
              {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]})",
                          R"("post_processor": {"type": "TemplateProcessing", "single": [
              {"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "<|end|>"}}]},)"));
  FolderTokenizer t(files);
  ASSERT_EQ(t.refusal, "");
  EXPECT_EQ(t.encode("111 ab", true), (Ids{6, 3, 5, 10}));
}

TEST(FolderTokenizerTest, MergesCharactersByRankWithBytesForOthers) {
  FolderFiles files;
  files.add("tokenizer.json", characterJson(kPrepend, "null"));
  FolderTokenizer t(files);
  ASSERT_EQ(t.refusal, "");
  // "▁ ab" has a better rank than "▁ a", and is reached after "a b".
  EXPECT_EQ(t.encode("ab a", true), (Ids{1, 7, 5}));
  EXPECT_EQ(t.encode(" a"), (Ids{2, 5}));
  EXPECT_EQ(t.encode("é"), (Ids{2, 20 + 0xc3, 20 + 0xa9}));
  EXPECT_EQ(t.decode({7, 5, 20 + 0xc3, 20 + 0xa9}), "ab aé");
}

TEST(FolderTokenizerTest, PrefixesAndSplitsSpacesAsMetaspaceSays) {
  auto json = [](const char *scheme, const char *split) {
    return characterJson("null", std::string(R"({"type": "Metaspace", "replacement": "▁",
      "prepend_scheme": ")") + scheme +
                                     R"(", "split": )" + split + "}");
  };
  FolderFiles first, never;
  first.add("tokenizer.json", json("first", "true"));
  never.add("tokenizer.json", json("never", "false"));
  FolderTokenizer a(first), b(never);
  EXPECT_EQ(a.encode("a<s>a"), (Ids{5, 1, 3}));
  EXPECT_EQ(a.encode(" a"), (Ids{5}));
  EXPECT_EQ(a.encode("▁a"), (Ids{5}));
  // Two spaces stay apart.
  EXPECT_EQ(a.encode("a  b"), (Ids{5, 2, 2, 4}));
  EXPECT_EQ(b.encode("a  b"), (Ids{3, 8, 4}));
}

TEST(FolderTokenizerTest, RefusesStepsThatItDoesNotKnow) {
  auto refusal = [](const std::string &json) {
    FolderFiles files;
    files.add("tokenizer.json", json);
    return FolderTokenizer(files).refusal;
  };
  EXPECT_THAT(refusal(byteLevelJson(R"({"type": "Whitespace"})")), HasSubstr("'Whitespace'"));
  EXPECT_THAT(refusal(byteLevelJson(kDigitsThenBytes, R"("normalizer": {"type": "Nmt"},)")),
              HasSubstr("normalizer has a step 'Nmt'"));
  EXPECT_THAT(refusal(R"({"model": {"type": "WordPiece", "vocab": {"a": 0}}})"),
              HasSubstr("'WordPiece'"));
  EXPECT_THAT(refusal(R"({"model": {"vocab": {"a": 0}, "merges": ["a x"]},
                          "pre_tokenizer": {"type": "ByteLevel"}})"),
              HasSubstr("'x' is no token"));
  EXPECT_THAT(refusal(R"({"model": {"vocab": {"a": 0, "b": 0}, "merges": []},
                          "pre_tokenizer": {"type": "ByteLevel"}})"),
              HasSubstr("the same id 0"));
  EXPECT_THAT(refusal(R"({"model": {"vocab": {"a": 4000000000}, "merges": []},
                          "pre_tokenizer": {"type": "ByteLevel"}})"),
              HasSubstr("no sensible id"));
}

// A value of another kind is no reason to go by a default.
TEST(FolderTokenizerTest, RefusesValuesOfAnotherKind) {
  EXPECT_THAT(refusalOf(byteLevelJson(R"({"type": "ByteLevel", "use_regex": "no"})")),
              HasSubstr("'use_regex' is 'no', expected true or false"));
  FolderFiles files;
  files.add("tokenizer.json", byteLevelJson(kDigitsThenBytes))
      .add("generation_config.json", R"({"eos_token_id": [10, "11"]})");
  EXPECT_THAT(FolderTokenizer(files).refusal,
              HasSubstr("generation_config.json: 'eos_token_id' is [10, '11'], expected ids"));
}

// Tables with a place for each id up to the highest would take 300 MB here.
TEST(FolderTokenizerTest, RefusesIdsFarBeyondTheirNumber) {
  EXPECT_THAT(refusalOf(R"({"model": {"vocab": {"a": 16000000}, "merges": []},
                            "pre_tokenizer": {"type": "ByteLevel"}})"),
              HasSubstr("no sensible id"));
}

// Writes fields of a protobuf.
struct Message {
  Bytes bytes;
  Message &number(int field, uint64_t value) {
    bytes.push_back(uint8_t(field << 3 & 0x7f) | (field > 15 ? 0x80 : 0));
    if (field > 15)
      bytes.push_back(uint8_t(field >> 4));
    for (; value > 127; value >>= 7)
      bytes.push_back(uint8_t(value | 128));
    bytes.push_back(uint8_t(value));
    return *this;
  }
  Message &part(int field, const Bytes &inner) {
    bytes.push_back(uint8_t(field << 3 | 2));
    bytes.push_back(uint8_t(inner.size()));
    bytes.insert(bytes.end(), inner.begin(), inner.end());
    return *this;
  }
  Message &score(float value) {
    bytes.push_back(2 << 3 | 5);
    auto *raw = reinterpret_cast<const uint8_t *>(&value);
    bytes.insert(bytes.end(), raw, raw + 4);
    return *this;
  }
};

Bytes pieces(int modelType) {
  Message model;
  int type[] = {2, 3, 1, 1, 1, 1};
  const char *texts[] = {"<unk>", "<s>", "▁", "a", "▁a", "aa"};
  for (int i = 0; i < 6; ++i) {
    std::string text = texts[i];
    model.part(1, Message()
                      .part(1, Bytes(text.begin(), text.end()))
                      .score(-float(i))
                      .number(3, type[i])
                      .bytes);
  }
  model.part(2, Message().number(3, modelType).number(40, 0).number(41, 1).bytes);
  return model.part(3, Message().number(3, 1).number(4, 0).bytes).bytes;
}

TEST(FolderTokenizerTest, ReadsPieceModels) {
  FolderFiles files;
  files.add("tokenizer.model", pieces(2)).add("added_tokens.json", R"({"<end>": 6})");
  FolderTokenizer t(files);
  ASSERT_EQ(t.refusal, "");
  // "▁a" has a better score than "aa".
  EXPECT_EQ(t.encode("aaa<end>", true), (Ids{1, 4, 5, 6}));
}

TEST(FolderTokenizerTest, RefusesOtherOrDamagedPieceModels) {
  FolderFiles words, cut;
  words.add("tokenizer.model", pieces(3));
  EXPECT_THAT(FolderTokenizer(words).refusal, HasSubstr("type 3"));
  Bytes half = pieces(2);
  half.resize(half.size() - 3);
  cut.add("tokenizer.model", half);
  EXPECT_THAT(FolderTokenizer(cut).refusal, HasSubstr("damaged"));
  for (const char *added : {"[5]", "7", R"({"<a>": "5"})", R"({"<a>": 16000000})"}) {
    FolderFiles more;
    more.add("tokenizer.model", pieces(2)).add("added_tokens.json", std::string(added));
    EXPECT_THAT(FolderTokenizer(more).refusal, HasSubstr("added_tokens.json: ")) << added;
  }
}

TEST(ChatTemplateTest, IsFoundInTheFilesOfAFolder) {
  FolderFiles files;
  files.add("config.json", "{}").add("tokenizer_config.json", R"({"bos_token": {"content": "<s>"},
    "eos_token": "</s>", "chat_template": [{"name": "tool_use", "template": "no"},
                                           {"name": "default", "template": "yes"}]})");
  auto found = readChatTemplate(*llvm::cantFail(files.open()));
  ASSERT_TRUE(bool(found));
  EXPECT_EQ(found->text, "yes");
  EXPECT_EQ(found->bosToken, "<s>");
  EXPECT_EQ(found->eosToken, "</s>");
}

} // namespace
