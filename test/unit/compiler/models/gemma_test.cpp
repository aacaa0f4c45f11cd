// What files of the Gemma family leave unsaid, and what is refused of them.

#include "test/unit/compiler/models/fake_source.h"
#include "gtest/gtest.h"

namespace izhc::test {
namespace {

// fillDecoder with `layers` layers of heads of 2 values and norms behind.
void fillGemma2(FakeSource &source, int layers) {
  fillDecoder(source, "gemma2");
  source.numbers["gemma2.block_count"] = layers;
  source.numbers["gemma2.attention.key_length"] = 2;
  source.numbers["gemma2.attention.value_length"] = 2;
  for (const char *name : {"attn_q", "attn_k", "attn_v", "attn_output"})
    source.removeTensor(std::string("blk.0.") + name + ".weight");
  for (int i = 0; i < layers; ++i) {
    std::string layer = "blk." + std::to_string(i) + ".";
    source.addTensor(layer + "attn_q.weight", {8, 4}, "f16");
    source.addTensor(layer + "attn_k.weight", {8, 2}, "f16");
    source.addTensor(layer + "attn_v.weight", {8, 2}, "f16");
    source.addTensor(layer + "attn_output.weight", {4, 8}, "f16");
    source.addTensor(layer + "post_attention_norm.weight", {8});
    source.addTensor(layer + "post_ffw_norm.weight", {8});
    if (i == 0)
      continue;
    source.addTensor(layer + "attn_norm.weight", {8});
    source.addTensor(layer + "ffn_norm.weight", {8});
    source.addTensor(layer + "ffn_gate.weight", {8, 16}, "f16");
    source.addTensor(layer + "ffn_up.weight", {8, 16}, "f16");
    source.addTensor(layer + "ffn_down.weight", {16, 8}, "f16");
  }
}

TEST(Gemma2Test, KnowsTheCapsAndTheWindowOfFilesThatDontTellThem) {
  FakeSource source;
  fillGemma2(source, 2);
  std::string text = buildText(source);
  // 1 / sqrt(2); the window of 4096 is more than the context.
  EXPECT_TRUE(contains(text, "scale 0.707106769 softcap 5.000000e+01")) << text;
  EXPECT_TRUE(contains(text, "at 3.000000e+01"));
  source.numbers["gemma2.context_length"] = 8192;
  EXPECT_TRUE(contains(buildText(source), "window 4096 softcap 5.000000e+01"));
  source.numbers["gemma2.attn_logit_softcapping"] = 0;
  source.numbers["gemma2.final_logit_softcapping"] = 0;
  text = buildText(source);
  EXPECT_FALSE(contains(text, "softcap"));
  EXPECT_FALSE(contains(text, "soft_cap"));
}

// Its products are divided by sqrt(8 / 2), not by sqrt(2).
TEST(Gemma2Test, ScalesTheLargestModelByItsEmbeddingsShareOfAHead) {
  FakeSource source;
  fillGemma2(source, 46);
  EXPECT_TRUE(contains(buildText(source), "scale 5.000000e-01 softcap"));
}

template <typename Change> void expectRefusal(Change change, const std::string &part) {
  FakeSource source;
  fillDecoder(source, "gemma4");
  source.numbers["gemma4.attention.sliding_window"] = 8;
  change(source);
  std::string text = buildText(source);
  EXPECT_TRUE(llvm::StringRef(text).starts_with("error: fake.gguf: ")) << text;
  EXPECT_TRUE(contains(text, part)) << text;
}

TEST(Gemma4Test, RefusesSharedCachesOfAKindThatHasNone) {
  expectRefusal(
      [](auto &s) {
        s.numbers["gemma4.block_count"] = 2;
        s.numbers["gemma4.attention.shared_kv_layers"] = 1;
        s.arrays["gemma4.attention.sliding_window_pattern"] = {1, 0};
      },
      "layer 1 reads the cache of an earlier layer of its kind, but none of the first 1");
}

TEST(Gemma4Test, RefusesSharingByAllLayers) {
  expectRefusal([](auto &s) { s.numbers["gemma4.attention.shared_kv_layers"] = 1; },
                "gemma4.attention.shared_kv_layers' is 1");
}

TEST(Gemma4Test, RefusesKeyHeadsThatDontDivide) {
  expectRefusal(
      [](auto &s) {
        s.numbers["gemma4.block_count"] = 2;
        s.numbers["gemma4.attention.head_count"] = 4;
        s.numbers.erase("gemma4.attention.head_count_kv");
        s.arrays["gemma4.attention.head_count_kv"] = {4, 3};
      },
      "layer 1 has 3 key heads for 4 heads");
}

TEST(Gemma4Test, RefusesValuesOfAnotherSizeThanKeys) {
  expectRefusal(
      [](auto &s) {
        s.numbers["gemma4.attention.key_length_swa"] = 4;
        s.numbers["gemma4.attention.value_length_swa"] = 2;
      },
      "keys of 4 and values of 2");
}

TEST(Gemma4Test, RefusesExperts) {
  expectRefusal(
      [](auto &s) {
        s.numbers["gemma4.expert_count"] = 8;
        s.numbers["gemma4.expert_used_count"] = 2;
        s.numbers["gemma4.expert_feed_forward_length"] = 8;
      },
      "a mixture of experts");
}

} // namespace
} // namespace izhc::test
