// What the compiler writes into the tokenizer section, and what it refuses.

#include "compiler/tokenizers/Tokenizers.h"
#include "runtime/schema/tokenizer_generated.h"
#include "runtime/schema/tokenizer_hash.h"
#include "test/unit/compiler/tokenizers/fake_source.h"
#include <cmath>
#include <gtest/gtest.h>
#include <set>

using namespace izhc;
using namespace izhc::test;
namespace schema = izh::schema;

namespace {

// A section and its root.
struct Built {
  std::vector<uint8_t> bytes;
  const schema::Tokenizer *operator->() const { return schema::GetTokenizer(bytes.data()); }
  std::string text(uint32_t id) const {
    const auto *offsets = (*this)->text_offsets();
    return {reinterpret_cast<const char *>((*this)->text()->data()) + offsets->Get(id),
            offsets->Get(id + 1) - offsets->Get(id)};
  }
};

// Nothing here asks for changed texts.
llvm::Expected<std::string> changeNothing(llvm::ArrayRef<TextStep>, llvm::StringRef) {
  return llvm::createStringError("changed texts are the runtime's");
}

Built build(const ModelSource &source, llvm::StringRef preTokenizer = "") {
  auto bytes = buildTokenizer(source, changeNothing, preTokenizer);
  if (!bytes) {
    ADD_FAILURE() << toString(bytes.takeError());
    abort();
  }
  flatbuffers::Verifier verifier(bytes->data(), bytes->size());
  EXPECT_TRUE(schema::VerifyTokenizerBuffer(verifier));
  return {std::move(*bytes)};
}

std::string refusal(const ModelSource &source, llvm::StringRef preTokenizer = "") {
  auto bytes = buildTokenizer(source, changeNothing, preTokenizer);
  return bytes ? "" : toString(bytes.takeError());
}

std::vector<std::string> patternsOf(const Built &built) {
  std::vector<std::string> patterns;
  for (const auto *pattern : *built->patterns())
    patterns.push_back(pattern->str());
  return patterns;
}

// The numbers, plus one, in the slots that are not free.
std::multiset<uint32_t> entriesOf(const flatbuffers::Vector<uint32_t> *slots) {
  std::multiset<uint32_t> entries;
  for (uint32_t slot : *slots)
    if (slot != 0)
      entries.insert(slot & schema::kSlotValue);
  return entries;
}

#define EXPECT_CONTAINS(TEXT, PART) EXPECT_NE((TEXT).find(PART), std::string::npos) << (TEXT)

TEST(TokenizersTest, WritesTheBytesThatTokensStandFor) {
  // G with dot above is a space, C with dot above a line feed.
  Built built = build(byteSource({"Ġab", "ĊĊ", "é", "日"}));
  EXPECT_EQ(built.text(' '), " ");
  EXPECT_EQ(built.text(256), " ab");
  EXPECT_EQ(built.text(257), "\n\n");
  // The character of byte 0xe9, which is in the vocabulary already.
  EXPECT_EQ(built.text(258), "\xe9");
  // Not of the byte alphabet: it stays.
  EXPECT_EQ(built.text(259), "日");
  for (int byte = 0; byte < 256; ++byte)
    EXPECT_EQ(built->byte_tokens()->Get(byte), byte);
}

TEST(TokenizersTest, WritesControlTokensAsTheyAreRead) {
  FakeSource source = byteSource({"Ġx", "<é>"});
  std::vector<int64_t> types(258, 1);
  types[256] = 4;
  types[257] = 3;
  source.values["tokenizer.ggml.token_type"] = types;
  Built built = build(source);
  EXPECT_EQ(built.text(256), "Ġx");
  EXPECT_EQ(built.text(257), "<é>");
  ASSERT_EQ(built->specials()->size(), 2u);
  // Ordered by bytes: '<' is before the first byte of U+0120.
  EXPECT_EQ(built->specials()->Get(0), 257u);
  EXPECT_EQ(built->specials()->Get(1), 256u);
}

TEST(TokenizersTest, WritesMergesAsIdsThatCanBeLookedUp) {
  Built built = build(byteSource({"ab", "Ġab"}, {"a b", "Ġ ab", "a b"}));
  ASSERT_EQ(built->merges()->size(), 3u);
  const schema::Merge *second = built->merges()->Get(1);
  EXPECT_EQ(second->left(), unsigned(' '));
  EXPECT_EQ(second->right(), 256u);
  EXPECT_EQ(second->result(), 257u);
  // The first of equal merges is the one that counts.
  uint32_t count = built->merge_slots()->size();
  uint32_t slot = schema::home_slot(schema::hash_pair('a', 'b'), count);
  uint32_t probes = 0;
  auto at = [&] { return built->merge_slots()->Get(slot) & schema::kSlotValue; };
  while (at() != 0 && at() != 1 && ++probes < schema::kMaxProbes)
    slot = (slot + 1) % count;
  EXPECT_EQ(at(), 1u);
  EXPECT_EQ(entriesOf(built->merge_slots()), (std::multiset<uint32_t>{1, 2}));
}

TEST(TokenizersTest, FindsEveryTokenWithinTheProbeLimit) {
  std::vector<std::string> words;
  for (int i = 0; i < 20000; ++i)
    words.push_back("w" + std::to_string(i * 7));
  Built built = build(scoreSource(words));
  uint32_t count = built->token_slots()->size();
  for (uint32_t id = 0; id < words.size() + 3; ++id) {
    std::string text = built.text(id);
    auto *bytes = reinterpret_cast<const uint8_t *>(text.data());
    uint32_t slot = schema::home_slot(schema::hash_bytes(bytes, text.size()), count);
    uint32_t probes = 1;
    for (; (built->token_slots()->Get(slot) & schema::kSlotValue) != id + 1;
         slot = (slot + 1) % count)
      ASSERT_LE(++probes, schema::kMaxProbes) << id;
  }
}

TEST(TokenizersTest, NamesTheMergeThatDoesNotWork) {
  EXPECT_CONTAINS(refusal(byteSource({"ab"}, {"a b", "ab"})), "merge 1 is 'ab'");
  EXPECT_CONTAINS(refusal(byteSource({"ab"}, {"a "})), "merge 0 is 'a '");
  EXPECT_CONTAINS(refusal(byteSource({"ab"}, {"a bc"})), "'bc' is no token");
  EXPECT_CONTAINS(refusal(byteSource({"ab"}, {"b a"})), "'ba' is no token");
}

TEST(TokenizersTest, AsksForThePreTokenizerByFlag) {
  FakeSource source = byteSource();
  source.values.erase("tokenizer.ggml.pre");
  EXPECT_CONTAINS(refusal(source), "--pre-tokenizer");
  EXPECT_CONTAINS(refusal(source), "smollm");
  EXPECT_EQ(patternsOf(build(source, "gpt-2")), patternsOf(build(byteSource())));
  source.values["tokenizer.ggml.pre"] = "made-up";
  EXPECT_CONTAINS(refusal(source), "'made-up' is unknown");
  EXPECT_CONTAINS(refusal(byteSource(), "made-up"), "'made-up' is unknown");
  EXPECT_CONTAINS(refusal(scoreSource(), "gpt-2"), "--pre-tokenizer=gpt-2 has no meaning");
}

TEST(TokenizersTest, RefusesArraysOfAnotherLength) {
  FakeSource source = byteSource();
  source.values["tokenizer.ggml.token_type"] = std::vector<int64_t>(255, 1);
  EXPECT_CONTAINS(refusal(source), "token_type has 255 entries, but there are 256 tokens");
  source = scoreSource();
  source.values["tokenizer.ggml.scores"] = std::vector<float>(4);
  EXPECT_CONTAINS(refusal(source), "scores has 4 entries, but there are 3 tokens");
}

TEST(TokenizersTest, RefusesValuesOutOfRange) {
  FakeSource source = byteSource();
  source.values["tokenizer.ggml.eos_token_id"] = int64_t(256);
  EXPECT_CONTAINS(refusal(source), "eos_token_id is 256, but the last token is 255");
  source = byteSource();
  source.values["tokenizer.ggml.token_type"] = std::vector<int64_t>(256, 7);
  EXPECT_CONTAINS(refusal(source), "token_type of token 0 is 7");
  source = scoreSource();
  source.values["tokenizer.ggml.scores"] = std::vector<float>{0, NAN, 0};
  EXPECT_CONTAINS(refusal(source), "scores of token 1 is not a number");
}

TEST(TokenizersTest, RefusesWhatIsMissing) {
  FakeSource source = byteSource();
  source.values.erase("tokenizer.ggml.merges");
  EXPECT_CONTAINS(refusal(source), "tokenizer.ggml.merges");
  source = byteSource();
  source.values.erase("tokenizer.ggml.tokens");
  EXPECT_CONTAINS(refusal(source), "tokenizer.ggml.tokens");
  source = byteSource();
  source.values.erase("tokenizer.ggml.model");
  EXPECT_CONTAINS(refusal(source), "tokenizer.ggml.model");
  source = scoreSource();
  source.values.erase("tokenizer.ggml.scores");
  EXPECT_CONTAINS(refusal(source), "tokenizer.ggml.scores");
}

TEST(TokenizersTest, GivesNothingForModelsWithoutAVocabulary) {
  FakeSource source;
  EXPECT_TRUE(cantFail(buildTokenizer(source, changeNothing)).empty());
  source.values["tokenizer.ggml.model"] = "no_vocab";
  EXPECT_TRUE(cantFail(buildTokenizer(source, changeNothing)).empty());
  source.values["tokenizer.ggml.model"] = "rwkv";
  EXPECT_CONTAINS(refusal(source), "'rwkv', which is not supported");
}

TEST(TokenizersTest, FillsInTheDefaultsOfEachKind) {
  FakeSource source = scoreSource();
  Built built = build(source);
  EXPECT_TRUE(built->add_bos());
  EXPECT_FALSE(built->add_eos());
  EXPECT_TRUE(built->add_space_prefix());
  EXPECT_EQ(built->unk(), 0);
  EXPECT_EQ(built->bos(), 1);
  EXPECT_EQ(built->eos(), 2);
  source.values["tokenizer.ggml.add_bos_token"] = false;
  source.values["tokenizer.ggml.add_space_prefix"] = false;
  built = build(source);
  EXPECT_FALSE(built->add_bos());
  EXPECT_FALSE(built->add_space_prefix());
  built = build(byteSource());
  EXPECT_FALSE(built->add_bos());
  EXPECT_FALSE(built->add_space_prefix());
  EXPECT_EQ(built->bos(), -1);
  // These vocabularies expect a begin token, and have words that don't merge.
  source = byteSource();
  source.values["tokenizer.ggml.bos_token_id"] = int64_t(5);
  built = build(source, "llama3");
  EXPECT_TRUE(built->add_bos());
  EXPECT_TRUE(built->whole_words());
}

TEST(TokenizersTest, CollectsTheTokensThatEndText) {
  FakeSource source = byteSource({"<|im_end|>", "<|fim_prefix|>", "<|endoftext|>"});
  source.values["tokenizer.ggml.eos_token_id"] = int64_t(7);
  Built built = build(source);
  EXPECT_EQ(std::vector<uint32_t>(built->ends()->begin(), built->ends()->end()),
            (std::vector<uint32_t>{7, 256, 258}));
  EXPECT_EQ(built->eot(), 256);
  for (uint32_t id : {256, 257, 258})
    EXPECT_EQ(schema::TokenType(built->types()->Get(id)), schema::TokenType::Control) << id;
  EXPECT_EQ(build(scoreSource())->ends()->Get(0), 2u);
}

TEST(TokenizersTest, EndsMessagesOnlyWhereTurnsEndOtherwise) {
  Built built = build(byteSource({"<|end|>", "<|return|>", "<|call|>"}));
  EXPECT_EQ(std::vector<uint32_t>(built->ends()->begin(), built->ends()->end()),
            (std::vector<uint32_t>{257, 258}));
}

TEST(TokenizersTest, SeesWhetherTokensReachAcrossSpaces) {
  EXPECT_TRUE(build(scoreSource({"▁a", "▁▁", "▁▁b"}))->words_at_spaces());
  EXPECT_FALSE(build(scoreSource({"▁a", "a▁"}))->words_at_spaces());
  EXPECT_FALSE(build(scoreSource({"▁a▁b"}))->words_at_spaces());
}

TEST(TokenizersTest, ReadsByteTokens) {
  FakeSource source = scoreSource({"<0x0A>", "b"});
  std::vector<int64_t> types = {2, 3, 3, 6, 1};
  source.values["tokenizer.ggml.token_type"] = types;
  Built built = build(source);
  EXPECT_EQ(built->byte_tokens()->Get('\n'), 3);
  EXPECT_EQ(built->byte_tokens()->Get('b'), 4);
  EXPECT_EQ(built->byte_tokens()->Get('c'), -1);
  types[4] = 6;
  source.values["tokenizer.ggml.token_type"] = types;
  EXPECT_CONTAINS(refusal(source), "token 4 is a byte token but its text is 'b'");
}

TEST(TokenizersTest, RefusesSpecialTokensThatAreNoText) {
  FakeSource source = byteSource({"\x80"});
  std::vector<int64_t> types(257, 1);
  types[256] = 4;
  source.values["tokenizer.ggml.token_type"] = types;
  EXPECT_CONTAINS(refusal(source), "token 256");
}

TEST(TokenizersTest, KeepsEmptyAndRepeatedTokensOutOfTheTables) {
  Built built = build(scoreSource({"", "a", "a"}));
  EXPECT_EQ(entriesOf(built->token_slots()), (std::multiset<uint32_t>{1, 2, 3, 5}));
}

} // namespace
