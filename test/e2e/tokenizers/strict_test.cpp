// What tokenizer.json and tokenizer.model say is done as they say it, or refused
// by name: nothing that changes ids is passed over.

#include "compiler/tokenizers/PatternSyntax.h"
#include "test/e2e/tokenizers/folder_tokenizer.h"
#include "llvm/Support/Base64.h"
#include <gmock/gmock.h>

using namespace izhc;
using namespace izhc::test;
using testing::HasSubstr;

namespace {

// A sequence of steps, in the section `name`.
std::string steps(const std::string &name, const std::string &list) {
  const char *key = name == "normalizer"      ? "normalizers"
                    : name == "pre_tokenizer" ? "pretokenizers"
                    : name == "decoder"       ? "decoders"
                                              : "processors";
  return "\"" + name + R"(": {"type": "Sequence", ")" + key + R"(": [)" + list + "]}, ";
}

std::string replaceStep(const std::string &from, const std::string &to) {
  return R"({"type": "Replace", "pattern": {"String": ")" + from + R"("}, "content": ")" + to +
         R"("})";
}

const std::string kPrefix = R"({"type": "Prepend", "prepend": "▁"})";
const std::string kEscape = replaceStep(" ", "▁");

// Characters, with U+2581 for spaces.
std::string characters(const std::string &sections, const std::string &model = "") {
  return "{" + sections + R"("model": {"type": "BPE", "unk_token": "<unk>", )" + model +
         R"("vocab": {"<unk>": 0, "▁": 1, "a": 2, "b": 3, "x": 4, "y": 5, " ": 6}, "merges": []}})";
}

std::string bytes(const std::string &sections, const std::string &model = "") {
  return "{" + sections + R"("model": {"type": "BPE", )" + model +
         R"("vocab": {"a": 0, "b": 1, "Ġ": 2, "1": 3, "<unk>": 4, "ab": 5}, "merges": ["a b"]}})";
}

std::string pieces(const std::string &model) {
  return R"({"pre_tokenizer": {"type": "Metaspace", "replacement": "▁"}, "model": {"type": "Unigram", )" +
         model + R"("vocab": [["<unk>", 0], ["▁", -1], ["a", -1]]}})";
}

const std::string kBytes = R"("pre_tokenizer": {"type": "ByteLevel"}, )";

Ids idsOf(const std::string &json, llvm::StringRef text) {
  FolderFiles files;
  files.add("tokenizer.json", json);
  FolderTokenizer tokenizer(files);
  EXPECT_EQ(tokenizer.refusal, "");
  return tokenizer.refusal.empty() ? tokenizer.encode(text) : Ids();
}

TEST(StrictTest, StepsOfTheNormalizerKeepTheirOrder) {
  auto normalized = [](const std::string &list, llvm::StringRef text) {
    return idsOf(characters(steps("normalizer", list)), text);
  };
  // As usual: a prefix, and U+2581 for spaces.
  EXPECT_EQ(normalized(kPrefix + "," + kEscape, "a b"), (Ids{1, 2, 1, 3}));
  // What comes behind sees U+2581, what comes before sees spaces.
  EXPECT_EQ(normalized(kEscape + "," + replaceStep("▁", "x"), "a b"), (Ids{2, 4, 3}));
  EXPECT_EQ(normalized(replaceStep("▁", "x") + "," + kEscape, "a b"), (Ids{2, 1, 3}));
  EXPECT_EQ(normalized(kPrefix + "," + replaceStep("▁a", "x") + "," + kEscape, "a a"),
            (Ids{4, 1, 2}));
  EXPECT_EQ(normalized(kEscape + "," + kPrefix + "," + replaceStep("▁a", "x"), "a a"), (Ids{4, 4}));
  EXPECT_EQ(normalized(R"({"type": "Prepend", "prepend": "x"},)" + kEscape, "a b"),
            (Ids{4, 2, 1, 3}));
  // Spaces made later stay spaces.
  EXPECT_THAT(refusalOf(characters(steps("normalizer", kEscape + "," + replaceStep("b", " ")))),
              HasSubstr("before a step that makes spaces"));
  EXPECT_THAT(refusalOf(characters(steps("normalizer", kEscape + R"(,{"type": "NFKC"})"))),
              HasSubstr("before a step that makes spaces"));
  EXPECT_THAT(
      refusalOf(bytes(kBytes +
                      steps("normalizer",
                            R"({"type": "Replace", "pattern": {"Regex": "a+"}, "content": "b"})"))),
      HasSubstr("the pattern 'a+'"));
}

TEST(StrictTest, FieldsOfTheWrongKindAreErrors) {
  for (const std::string &json :
       {bytes(R"("pre_tokenizer": {"type": "ByteLevel", "use_regex": "false"}, )"),
        bytes(R"("pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": 1}, )"),
        bytes(kBytes, R"("ignore_merges": "true", )"), bytes(kBytes, R"("byte_fallback": 0, )"),
        bytes(kBytes, R"("fuse_unk": "no", )"), pieces(R"("unk_id": 0, "byte_fallback": "yes", )"),
        bytes(kBytes + R"("added_tokens": [{"id": 9, "content": "<e>", "special": "true"}], )"),
        bytes(kBytes + R"("added_tokens": [{"id": 9, "content": "<e>", "lstrip": 1}], )"),
        bytes(kBytes + R"("normalizer": {"type": "Strip", "strip_left": "no"}, )")})
    EXPECT_THAT(refusalOf(json), HasSubstr("expected true or false")) << json;
  EXPECT_THAT(refusalOf(pieces(R"("unk_id": "0", )")),
              HasSubstr("'unk_id' is '0', expected an integer"));
  EXPECT_THAT(refusalOf(bytes(kBytes + R"("added_tokens": [{"id": "9", "content": "<e>"}], )")),
              HasSubstr("expected an integer"));
  EXPECT_THAT(
      refusalOf(characters(R"("pre_tokenizer": {"type": "Metaspace", "replacement": 5}, )")),
      HasSubstr("expected a string"));
}

TEST(StrictTest, UnknownFieldsAndStepsAreErrors) {
  EXPECT_THAT(refusalOf(bytes(kBytes, R"("end_of_word": "</w>", )")), HasSubstr("'end_of_word'"));
  EXPECT_THAT(refusalOf(bytes(R"("pre_tokenizer": {"type": "ByteLevel", "upper": true}, )")),
              HasSubstr("'upper'"));
  EXPECT_THAT(
      refusalOf(bytes(kBytes + R"("added_tokens": [{"id": 9, "content": "<e>", "once": true}], )")),
      HasSubstr("'once'"));
  EXPECT_THAT(refusalOf(bytes(kBytes + R"("decoder": {"type": "CTC"}, )")),
              HasSubstr("decoder has a step 'CTC'"));
  EXPECT_THAT(
      refusalOf(
          bytes(kBytes +
                R"("decoder": {"type": "Replace", "pattern": {"String": "a"}, "content": "b"}, )")),
      HasSubstr("decoder has a step 'Replace'"));
  EXPECT_THAT(refusalOf(bytes(kBytes + R"("post_processor": {"type": "Own"}, )")),
              HasSubstr("'Own'"));
  EXPECT_THAT(refusalOf(bytes(kBytes, R"("dropout": 0.1, )")), HasSubstr("dropout"));
  EXPECT_THAT(
      refusalOf(bytes(steps("pre_tokenizer", R"({"type": "ByteLevel"}, {"type": "ByteLevel"})"))),
      HasSubstr("behind ByteLevel"));
  // Words are cut between bytes last: a pattern might have matched across that.
  EXPECT_THAT(refusalOf(bytes(steps("pre_tokenizer", R"({"type": "ByteLevel"}, {"type": "Digits"},
    {"type": "Split", "pattern": {"Regex": "[a-z0-9]+"}, "behavior": "Isolated"})"))),
              HasSubstr("by letters behind ByteLevel and another step"));
  EXPECT_THAT(refusalOf(characters(steps("pre_tokenizer", R"({"type": "WhitespaceSplit"},
    {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first"})"))),
              HasSubstr("Metaspace"));
  EXPECT_THAT(refusalOf(bytes(kBytes + R"("normalizer": {"type": "Sequence"}, )")),
              HasSubstr("without a list of steps"));
  // What is null is not there.
  EXPECT_EQ(
      refusalOf(bytes(kBytes, R"("dropout": null, "end_of_word_suffix": null, "later": null, )")),
      "");
}

TEST(StrictTest, IdsThatAreNoTokensAreErrors) {
  EXPECT_THAT(refusalOf(pieces(R"("unk_id": 3, )")),
              HasSubstr("unk_id is 3, but the last token is 2"));
  EXPECT_THAT(refusalOf(pieces("")), HasSubstr("neither an unk_id"));
  std::string unknown = characters(R"("normalizer": )" + kEscape + ", ");
  unknown.replace(unknown.find("<unk>"), 5, "<non>");
  EXPECT_THAT(refusalOf(unknown), HasSubstr("unk_token is '<non>', which is no token"));
  auto surround = [](const char *ids) {
    return bytes(kBytes + R"("post_processor": {"type": "TemplateProcessing", "single": [
      {"SpecialToken": {"id": "<unk>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}], "pair": [],
      "special_tokens": {"<unk>": {"id": "<unk>", "ids": )" +
                 ids + R"(, "tokens": ["<unk>"]}}}, )");
  };
  EXPECT_EQ(refusalOf(surround("[4]")), "");
  EXPECT_THAT(refusalOf(surround("[3]")), HasSubstr("as id 3, but that token is 4"));
  EXPECT_THAT(refusalOf(surround("[4, 3]")), HasSubstr("is not one id"));
  FolderFiles files;
  files.add("tokenizer.json", bytes(kBytes))
      .add("generation_config.json", R"({"eos_token_id": "4"})");
  EXPECT_THAT(FolderTokenizer(files).refusal, HasSubstr("'eos_token_id' is '4', expected ids"));
}

TEST(StrictTest, TokensAreLookedForInChangedText) {
  auto added = [](const std::string &text, const std::string &normalizer) {
    return bytes(kBytes + R"("added_tokens": [{"id": 9, "content": ")" + text +
                 R"(", "normalized": true}], "normalizer": {"type": ")" + normalizer + R"("}, )");
  };
  EXPECT_EQ(idsOf(added("AB", "Lowercase"), "ab1Ab"), (Ids{9, 3, 9}));
  EXPECT_EQ(idsOf(added("AB", "NFC"), "ab1AB"), (Ids{5, 3, 9}));
  EXPECT_EQ(idsOf(added("\u00c4", "Lowercase"), "a\u00e4\u00c4b"), (Ids{0, 9, 9, 1}));
  EXPECT_EQ(idsOf(added("\u00c4", "NFD"), "a\u00c4A\u0308b"), (Ids{0, 9, 9, 1}));
  EXPECT_THAT(refusalOf(added(" ", "Strip")), HasSubstr("leaves nothing of it"));
  EXPECT_THAT(refusalOf(added(R"(X", "normalized": true}, {"id": 10, "content": "x)", "Lowercase")),
              HasSubstr("makes the added tokens 'X' and 'x' equal"));
  EXPECT_EQ(idsOf(added(R"(X", "normalized": true}, {"id": 10, "content": "x)", "NFC"), "xX"),
            (Ids{10, 9}));
}

TEST(StrictTest, AddedTokensAreNoPiecesOfTheModel) {
  // Looked for with the prefix that the normalizer puts; elsewhere there is no such piece.
  std::string json =
      characters(steps("normalizer", kPrefix + "," + kEscape) +
                 R"("added_tokens": [{"id": 9, "content": "z", "normalized": true}], )");
  EXPECT_EQ(idsOf(json, "z"), (Ids{9}));
  EXPECT_EQ(idsOf(json, "az"), (Ids{1, 2, 0}));
  EXPECT_EQ(idsOf(json, "a z"), (Ids{1, 2, 9}));
  // Nor do they stand for bytes.
  EXPECT_EQ(idsOf(bytes(R"("pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}, )"
                        R"("added_tokens": [{"id": 9, "content": "x", "single_word": true}], )"),
                  "x ax"),
            (Ids{9, 2, 0}));
}

// Where no special token was cut out, the model may still find it.
TEST(StrictTest, SpecialTokensThatArePiecesAreUsedByTheModel) {
  auto sections = [](const std::string &token, const std::string &normalizer) {
    return R"({"added_tokens": [{"special": true, )" + token + "}], " + normalizer +
           R"("pre_tokenizer": {"type": )";
  };
  auto unigram = [&](const std::string &token, const std::string &normalizer = "") {
    return sections(token, normalizer) + R"("Metaspace", "replacement": "▁"}, "model":
      {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["▁", -1], ["a", -1],
        ["<s>", 0], ["Ω", -3], ["b", -9]]}})";
  };
  std::string omega = unigram(R"("id": 4, "content": "Ω", "single_word": true)");
  EXPECT_EQ(idsOf(omega, "Ω1"), (Ids{1, 4, 0}));
  EXPECT_EQ(idsOf(omega, "aΩ"), (Ids{1, 2, 4}));
  std::string begin =
      unigram(R"("id": 3, "content": "<s>")", R"("normalizer": {"type": "NFKC"}, )");
  EXPECT_EQ(idsOf(begin, "a\uff1cs>"), (Ids{1, 2, 3}));
  auto words = [&](const std::string &token) {
    return sections(token, "") + R"("BertPreTokenizer"}, "model": {"type": "WordPiece",
      "vocab": {"[UNK]": 0, "a": 1, "##a": 2, "x": 3, "##x": 4}}})";
  };
  std::string whole = words(R"("id": 3, "content": "x", "single_word": true)");
  EXPECT_EQ(idsOf(whole, "xa"), (Ids{3, 2}));
  EXPECT_EQ(idsOf(words(R"("id": 4, "content": "##x")"), "ax"), (Ids{1, 4}));
  EXPECT_EQ(idsOf(characters(steps("normalizer", kEscape) +
                             R"("added_tokens": [{"id": 4, "content": "x", "single_word": true,
                                "special": true}], )"),
                  "xa ax"),
            (Ids{4, 2, 1, 2, 4}));
  // Not in text that is only text.
  FolderFiles files;
  files.add("tokenizer.json", begin);
  EXPECT_EQ(FolderTokenizer(files).BuiltTokenizer::encode("a<s>", false, false), (Ids{1, 2, 0}));
  FolderFiles more;
  more.add("tokenizer.json", whole);
  EXPECT_EQ(FolderTokenizer(more).BuiltTokenizer::encode("xa", false, false), (Ids{0}));
}

TEST(StrictTest, TokensOfBytesMayBeSpecial) {
  std::string vocabulary = R"({"<unk>": 0, "▁": 1, "A": 2)", digits = "0123456789ABCDEF";
  for (unsigned byte = 0; byte < 256; ++byte)
    vocabulary += std::string(", \"<0x") + digits[byte / 16] + digits[byte % 16] +
                  ">\": " + std::to_string(3 + byte);
  std::string json = "{" + steps("normalizer", kEscape) +
                     R"("added_tokens": [{"id": 68, "content": "<0x41>", "special": true}],
      "model": {"type": "BPE", "unk_token": "<unk>", "byte_fallback": true, "vocab": )" +
                     vocabulary + R"(}, "merges": []}})";
  EXPECT_EQ(idsOf(json, "<0x41>"), (Ids{68}));
  EXPECT_EQ(idsOf(json, "A<0x41>B"), (Ids{2, 68, 69}));
  EXPECT_EQ(idsOf(json, "B<0x4"), (Ids{69, 63, 51, 123, 55}));
}

TEST(StrictTest, SpecialTokensOverlapAsTheLibraryHasThem) {
  std::string json = bytes(
      kBytes + R"("added_tokens": [{"id": 9, "content": "abc"}, {"id": 10, "content": "bcdef"},
    {"id": 5, "content": "ab"}], )");
  // The first one, of several the longest one there.
  EXPECT_EQ(idsOf(json, "abcdef a"), (Ids{9, 2, 0}));
  EXPECT_EQ(idsOf(json, "bcdefab"), (Ids{10, 5}));
  EXPECT_THAT(refusalOf(bytes(kBytes + R"("added_tokens": [{"id": 9, "content": "ab"}], )")),
              HasSubstr("'ab' has the id 9, but it is token 5 too"));
}

TEST(StrictTest, BlanksThatATokenTakesMayHoldTokens) {
  auto added = [](const std::string &x, const std::string &y) {
    return bytes(kBytes + R"("added_tokens": [{"id": 6, "content": "X")" + x +
                 R"(}, {"id": 7, "content": ")" + y + "}], ");
  };
  const std::string left = R"(", "lstrip": true)", right = R"(, "rstrip": true)";
  std::string both = added("", "\\n" + left + right);
  EXPECT_EQ(idsOf(both, "\n\n"), (Ids{7}));
  EXPECT_EQ(idsOf(both, "a\n\n \nb"), (Ids{0, 7, 1}));
  EXPECT_EQ(idsOf(both, "X\n X"), (Ids{6, 7, 6}));
  // One that takes no blanks itself is never taken, and what is behind it is back.
  std::string behind = added(right, "\\n\"");
  EXPECT_EQ(idsOf(behind, "X\n"), (Ids{6, 7}));
  EXPECT_EQ(idsOf(behind, "aX  \n\nb"), (Ids{0, 6, 7, 7, 1}));
  EXPECT_EQ(idsOf(behind, "X \n b"), (Ids{6, 7, 2, 1}));
  // Of one that begins with blanks the rest is left.
  std::string longer = added(right, "\\nY" + left);
  EXPECT_EQ(idsOf(longer, "X\nY"), (Ids{6, 7}));
  EXPECT_EQ(idsOf(longer, "aX  \n \nYb"), (Ids{0, 6, 7, 1}));
}

TEST(StrictTest, PatternsAreThoseOfTheirLibrary) {
  // Ends of lines, all digits, classes in classes, what repeats a number of times.
  EXPECT_EQ(fromOniguruma(R"(\s+$|\d\w\h)"),
            R"([\t-\r\x{85}\p{Z}]+(?:$|(?=\n))|[\p{Nd}][\p{L}\p{M}\p{N}\p{Pc}][0-9A-Fa-f])");
  EXPECT_EQ(fromOniguruma(R"([^(\s|[.,!?])]+\v\u00e9)"),
            R"([^(\t-\r\x{85}\p{Z}|.,!?)]+\x{b}\x{00e9})");
  EXPECT_EQ(fromOniguruma(R"([]a\]]\p{L}{1,3}?x{2})"), R"([]a\]]\p{L}{1,3}?x{2})");
  for (const char *pattern :
       {R"([\p{L}&&[^a]])", "[a[^b]]", "[[:alpha:]]", R"([\S])", R"([\W])", "a{1,2}+", "a{2}?",
        "[a-[b]]", "[a[-b]]", "[a[b-]c]", "[[b]-c]", R"(\K)", "[a", "a{1", R"(\u12)", "\\"})
    EXPECT_EQ(fromOniguruma(pattern), std::nullopt) << pattern;
  auto split = [](const char *pattern, const char *behavior) {
    return bytes(steps("pre_tokenizer", std::string(R"({"type": "Split", "pattern": {"Regex": ")") +
                                            pattern + R"("}, "invert": true, "behavior": ")" +
                                            behavior +
                                            R"("}, {"type": "ByteLevel", "use_regex": false})"));
  };
  EXPECT_EQ(idsOf(split(R"([a ]|\\n|[^\\n]+?)", "Removed"), "ab"), (Ids{0, 1}));
  EXPECT_THAT(refusalOf(split("a", "Removed")), HasSubstr("is dropped from texts"));
  EXPECT_THAT(refusalOf(split(R"([\\p{L}&&[^a]])", "Isolated")),
              HasSubstr("the pattern '[\\p{L}&&[^a]]'"));
}

TEST(StrictTest, PatternsThatMatchNothingAreErrors) {
  auto split = [](const char *pattern) {
    return bytes(steps("pre_tokenizer", std::string(R"({"type": "Split", "pattern": {"Regex": ")") +
                                            pattern +
                                            R"("}, "invert": false, "behavior": "Isolated"},
                                              {"type": "ByteLevel", "use_regex": false})"));
  };
  for (const char *pattern : {"(?=[A-Z])", "a*", "b|(?:a?1{0,2})", "$"})
    EXPECT_THAT(refusalOf(split(pattern)), HasSubstr("may match the empty text")) << pattern;
  EXPECT_EQ(idsOf(split("b(?=1)|a+"), "abb1"), (Ids{0, 1, 1, 3}));
}

TEST(StrictTest, StepsThatDropSpacesBeforeBytesAreErrors) {
  for (const char *between : {"", R"({"type": "Digits"},)"})
    EXPECT_THAT(
        refusalOf(bytes(steps("pre_tokenizer", std::string(R"({"type": "WhitespaceSplit"},)") +
                                                   between + R"({"type": "ByteLevel"})"))),
        testing::AnyOf(HasSubstr("'ByteLevel' (behind WhitespaceSplit"), HasSubstr("'Digits'")));
}

TEST(StrictTest, TemplatesOfOtherTextsThanOneAreErrors) {
  auto around = [](const std::string &single) {
    return bytes(kBytes + R"("post_processor": {"type": "TemplateProcessing", "single": [)" +
                 single + R"(], "pair": [], "special_tokens": {}}, )");
  };
  const std::string text = R"({"Sequence": {"id": "A", "type_id": 0}})";
  EXPECT_EQ(refusalOf(around(text)), "");
  EXPECT_THAT(refusalOf(around(text + "," + text)), HasSubstr("with the text twice"));
  EXPECT_THAT(refusalOf(around(R"({"Sequence": {"id": "B", "type_id": 0}})")),
              HasSubstr("with a second text"));
}

TEST(StrictTest, BytesWithoutTokensAreUnknownOrLeftOut) {
  const std::string unknown = R"("unk_token": "<unk>", )";
  // What is left out parts nothing.
  EXPECT_EQ(idsOf(bytes(kBytes), "axb xxa"), (Ids{5, 2, 0}));
  EXPECT_EQ(idsOf(bytes(kBytes, unknown), "axyb"), (Ids{0, 4, 4, 1}));
  // One for what stands together in a word.
  EXPECT_EQ(idsOf(bytes(kBytes, unknown + R"("fuse_unk": true, )"), "axyb\u00e4 xa\u00e4x"),
            (Ids{0, 4, 1, 4, 2, 4, 0, 4}));
  EXPECT_THAT(refusalOf(bytes(kBytes, R"("unk_token": "<non>", )")),
              HasSubstr("unk_token is '<non>', which is no token"));
  std::string some = bytes(kBytes, R"("byte_fallback": true, )");
  EXPECT_EQ(idsOf(some, "axb"), (Ids{5}));
  some.replace(some.find("<unk>"), 5, "<0x78>");
  EXPECT_THAT(refusalOf(some), HasSubstr("would fall back to others (byte_fallback)"));
}

TEST(StrictTest, CharactersWithoutIdsAreErrors) {
  const std::string escape = R"("normalizer": )" + kEscape + ", ";
  auto file = [&](const std::string &from, const std::string &to) {
    std::string json = characters(escape, R"("byte_fallback": true, )");
    return json.replace(json.find(from), from.size(), to);
  };
  EXPECT_EQ(idsOf(characters(escape, R"("byte_fallback": true, )"), "a?b"), (Ids{2, 0, 3}));
  EXPECT_THAT(refusalOf(file(R"("unk_token": "<unk>", )", "")),
              HasSubstr("neither an unk_token nor a token for each byte"));
  EXPECT_THAT(refusalOf(file(R"("y": 5)", R"("<0x79>": 5)")),
              HasSubstr("bytes of UTF-8 have no token"));
  std::string scored = pieces(R"("unk_id": 0, "byte_fallback": true, )");
  EXPECT_EQ(idsOf(scored, "a\u00e9"), (Ids{1, 2, 0}));
  scored.replace(scored.find("\"a\""), 3, "\"<0xC3>\"");
  EXPECT_THAT(refusalOf(scored), HasSubstr("bytes of UTF-8 have no token"));
}

TEST(StrictTest, BertsNormalizerDropsControlCharacters) {
  std::string json = bytes(kBytes + R"("normalizer": {"type": "BertNormalizer"}, )");
  for (const char *dropped : {"\v", "\f", "\x1c", "\x7f", "\u0085", "\u00ad", "\u200b", "\ufffd"})
    EXPECT_EQ(idsOf(json, std::string("a") + dropped + "b"), (Ids{5})) << dropped;
  for (const char *space : {"\t", "\n", "\r", "\u00a0", "\u2028", "\u3000"})
    EXPECT_EQ(idsOf(json, std::string("a") + space + "b"), (Ids{0, 2, 1})) << space;
}

TEST(StrictTest, WordsNeedNoMarkForTheirInside) {
  auto words = [](const char *inside) {
    return std::string(R"({"pre_tokenizer": {"type": "BertPreTokenizer"}, "model": {"type":
      "WordPiece", "continuing_subword_prefix": ")") +
           inside + R"(", "vocab": {"[UNK]": 0, "a": 1, "b": 2, "##b": 3}}})";
  };
  EXPECT_EQ(idsOf(words("##"), "ab b"), (Ids{1, 3, 2}));
  // Without one every token both begins a word and goes on with one.
  EXPECT_EQ(idsOf(words(""), "abb a##b x"), (Ids{1, 2, 2, 1, 0, 0, 2, 0}));
}

TEST(StrictTest, WordsMayBeginWithWhatTheNormalizerPuts) {
  std::string json = R"({"normalizer": )" + kPrefix +
                     R"(, "pre_tokenizer": {"type": "BertPreTokenizer"}, "model": {"type":
      "WordPiece", "vocab": {"[UNK]": 0, "a": 1, "##a": 2, "▁": 3, "b": 4}}})";
  EXPECT_EQ(idsOf(json, "aa b"), (Ids{3, 2, 2, 4}));
  EXPECT_EQ(idsOf(json, " a"), (Ids{3, 1}));
  EXPECT_EQ(idsOf(json, ""), Ids());
}

TEST(StrictTest, PrefixesOfTextsWithoutTheirStartAreErrors) {
  auto first = [](const std::string &step, const std::string &scheme = "first") {
    return characters(steps("normalizer", step) +
                      R"("pre_tokenizer": {"type": "Metaspace", "replacement": "▁",
                         "prepend_scheme": ")" +
                      scheme + R"("}, )");
  };
  for (const std::string &step :
       {std::string(R"({"type": "StripAccents"})"),
        std::string(R"({"type": "Strip", "strip_left": true, "strip_right": false})"),
        std::string(R"({"type": "BertNormalizer"})"), replaceStep("a", "")}) {
    EXPECT_THAT(refusalOf(first(step)), HasSubstr("may drop the first characters of a text"))
        << step;
    EXPECT_EQ(idsOf(first(step, "always"), "b"), (Ids{1, 3})) << step;
  }
  EXPECT_EQ(idsOf(first(R"({"type": "Strip", "strip_left": false})"), "b "), (Ids{1, 3}));
}

TEST(StrictTest, MapsThatLeadInCirclesAreErrors) {
  auto precompiled = [](const char *map) {
    return bytes(kBytes + R"("normalizer": {"type": "Precompiled", "precompiled_charsmap": ")" +
                 map + R"("}, )");
  };
  // Three units: a root, one for "a", one behind it; then the text "b".
  EXPECT_EQ(idsOf(precompiled("DAAAAACAAQBhDQAAAAAAgGIA"), "aa"), (Ids{1, 1}));
  EXPECT_THAT(refusalOf(precompiled("/wAAAACAAQBhDQAAAAAAgGIA")), HasSubstr("is damaged"));
  // Without the zero byte that ends the text.
  EXPECT_THAT(refusalOf(precompiled("DAAAAACAAQBhDQAAAAAAgGJi")), HasSubstr("has no end"));
  // Every "a" leads to a place of its own, or the last one back to the first.
  auto chain = [](uint32_t length, bool circle) {
    std::vector<uint32_t> units(256 * (length + 2));
    units[0] = 256 << 10;
    for (uint32_t i = 1; i <= length; ++i) {
      uint32_t place = 256 * i ^ 'a', next = 256 * (circle && i == length ? 1 : i + 1);
      units[place] = (place ^ next) << 10 | 'a';
    }
    std::string map(4 + units.size() * 4, '\0');
    uint32_t size = uint32_t(units.size() * 4);
    memcpy(map.data(), &size, 4);
    memcpy(map.data() + 4, units.data(), size);
    return llvm::encodeBase64(map + "b" + std::string(1, '\0'));
  };
  EXPECT_EQ(refusalOf(precompiled(chain(256, false).c_str())), "");
  EXPECT_THAT(refusalOf(precompiled(chain(257, false).c_str())), HasSubstr("more than 256 bytes"));
  EXPECT_THAT(refusalOf(precompiled(chain(1, true).c_str())), HasSubstr("leads in circles"));
  EXPECT_THAT(refusalOf(precompiled(chain(9, true).c_str())), HasSubstr("leads in circles"));
}

} // namespace
