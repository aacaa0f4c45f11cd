// Every way in which a file can be wrong ends in a sentence that names the
// file and the key or tensor.

#include "test/unit/compiler/models/fake_source.h"
#include "gtest/gtest.h"
#include <limits>

namespace izhc::test {
namespace {

// Builds a llama file after `change` and expects a sentence with `part`.
template <typename Change> void expectRefusal(Change change, const std::string &part) {
  FakeSource source;
  fillDecoder(source, "llama");
  change(source);
  std::string text = buildText(source);
  EXPECT_TRUE(llvm::StringRef(text).starts_with("error: ")) << text;
  EXPECT_TRUE(contains(text, "fake.gguf"));
  EXPECT_TRUE(contains(text, part));
}

TEST(ModelRefusalTest, NamesWhatIsKnownForAnUnknownArchitecture) {
  expectRefusal([](auto &s) { s.strings["general.architecture"] = "abacus"; },
                "'abacus' can't be compiled; known are ");
}

TEST(ModelRefusalTest, NamesEachMissingKey) {
  for (const char *key :
       {"context_length", "embedding_length", "block_count", "feed_forward_length",
        "attention.head_count", "attention.layer_norm_rms_epsilon"})
    expectRefusal([&](auto &s) { s.numbers.erase("llama." + std::string(key)); },
                  "llama." + std::string(key));
}

TEST(ModelRefusalTest, NamesEachKeyThatIsZeroOrAbsurd) {
  for (const char *key : {"context_length", "embedding_length", "block_count",
                          "feed_forward_length", "attention.head_count", "attention.head_count_kv"})
    for (double value : {0.0, 4e9})
      expectRefusal([&](auto &s) { s.numbers["llama." + std::string(key)] = value; },
                    "llama." + std::string(key));
}

TEST(ModelRefusalTest, NamesEachMissingTensor) {
  FakeSource complete;
  fillDecoder(complete, "llama");
  for (const TensorInfo &tensor : complete.tensors())
    if (tensor.name != "output.weight")
      expectRefusal([&](auto &s) { s.removeTensor(tensor.name.str()); }, tensor.name.str());
}

TEST(ModelRefusalTest, NamesAMisshapenTensor) {
  expectRefusal(
      [](auto &s) {
        s.removeTensor("blk.0.ffn_up.weight");
        s.addTensor("blk.0.ffn_up.weight", {8, 15});
      },
      "blk.0.ffn_up.weight");
}

TEST(ModelRefusalTest, NamesATensorWithoutAPlace) {
  expectRefusal([](auto &s) { s.addTensor("blk.0.mystery.weight", {8}); }, "blk.0.mystery.weight");
}

TEST(ModelRefusalTest, NamesAQuantizedVector) {
  expectRefusal(
      [](auto &s) {
        s.removeTensor("output_norm.weight");
        s.addTensor("output_norm.weight", {8}, "q8_0");
      },
      "output_norm.weight");
}

TEST(ModelRefusalTest, NamesHeadsThatDontDivide) {
  expectRefusal([](auto &s) { s.numbers["llama.attention.head_count_kv"] = 3; },
                "a multiple of the 3 heads of keys");
  expectRefusal([](auto &s) { s.numbers["llama.attention.value_length"] = 8; }, "values of 8");
  expectRefusal([](auto &s) { s.arrays["llama.attention.head_count_kv"] = {1, 2}; },
                "differs from layer to layer");
}

TEST(ModelRefusalTest, NamesBadRopeParameters) {
  double nan = std::numeric_limits<double>::quiet_NaN();
  expectRefusal([](auto &s) { s.numbers["llama.rope.dimension_count"] = 3; },
                "dimension_count' is 3");
  expectRefusal([](auto &s) { s.numbers["llama.rope.dimension_count"] = 6; },
                "dimension_count' is 6");
  for (double base : {0.0, -1.0, nan})
    expectRefusal([&](auto &s) { s.numbers["llama.rope.freq_base"] = base; }, "rope.freq_base");
  for (double factor : {-1.0, nan})
    expectRefusal([&](auto &s) { s.numbers["llama.rope.scaling.factor"] = factor; },
                  "rope.scaling.factor");
  expectRefusal([](auto &s) { s.strings["llama.rope.scaling.type"] = "dynamic"; }, "'dynamic'");
}

TEST(ModelRefusalTest, NamesBadRopeFactors) {
  static const float zero[] = {1, 0};
  expectRefusal([](auto &s) { s.addTensor("rope_freqs.weight", {2}, "f32", zero); },
                "rope_freqs.weight");
  expectRefusal([](auto &s) { s.addTensor("rope_freqs.weight", {3}, "f32", zero); },
                "rope_freqs.weight");
  expectRefusal([](auto &s) { s.addTensor("rope_freqs.weight", {2}, "f16", zero); },
                "rope_freqs.weight");
}

TEST(ModelRefusalTest, NamesABadEps) {
  for (double eps : {-1.0, 2.0, std::numeric_limits<double>::quiet_NaN()})
    expectRefusal([&](auto &s) { s.numbers["llama.attention.layer_norm_rms_epsilon"] = eps; },
                  "layer_norm_rms_epsilon");
}

TEST(ModelRefusalTest, NamesExperts) {
  expectRefusal([](auto &s) { s.numbers["llama.expert_count"] = 8; }, "llama.expert_used_count");
  auto used = [](double used, double groups, auto &s) {
    s.numbers["llama.expert_count"] = 8;
    s.numbers["llama.expert_used_count"] = used;
    s.numbers["llama.expert_group_count"] = groups;
    s.numbers["llama.expert_group_used_count"] = 1;
  };
  expectRefusal([&](auto &s) { used(9, 1, s); }, "must lie between 1 and 8");
  expectRefusal([&](auto &s) { used(2, 3, s); }, "2 of 8 experts can't come from 1 of 3 groups");
  expectRefusal([&](auto &s) { used(5, 2, s); }, "5 of 8 experts can't come from 1 of 2 groups");
  // No architecture without experts takes them for something else.
  expectRefusal(
      [](auto &s) {
        s.strings["general.architecture"] = "granite";
        for (auto [key, value] : std::map(s.numbers))
          s.numbers["granite" + key.substr(5)] = value;
        s.numbers["granite.expert_count"] = 8;
        s.numbers["granite.expert_used_count"] = 2;
      },
      "a mixture of experts");
}

TEST(ModelRefusalTest, NamesAttentionThatIsNotCausal) {
  expectRefusal([](auto &s) { s.flags["llama.attention.causal"] = false; }, "attention.causal");
}

TEST(ModelRefusalTest, NamesWhatElseChangesAttention) {
  for (const char *key : {"llama.attention.clamp_kqv", "llama.attention.max_alibi_bias"})
    expectRefusal([&](auto &s) { s.numbers[key] = 8; }, key);
}

TEST(ModelRefusalTest, NamesWindowsAndCapsOfAttention) {
  expectRefusal([](auto &s) { s.numbers["llama.attention.sliding_window"] = 1; },
                "llama.attention.sliding_window' is 1");
  expectRefusal([](auto &s) { s.numbers["llama.attn_logit_softcapping"] = 50; },
                "llama.attn_logit_softcapping' is 50");
}

TEST(ModelRefusalTest, CountsTokensThatHaveNoRow) {
  FakeSource source;
  fillDecoder(source, "llama");
  size_t rows = size_t(source.findTensor("token_embd.weight")->rows());
  expectRefusal([&](auto &s) { s.tokens.emplace(rows + 1); },
                "has " + std::to_string(rows + 1) + " entries");
  source.tokens.emplace(rows);
  EXPECT_FALSE(contains(buildText(source), "error"));
}

TEST(ModelRefusalTest, WantsTheBiasesOfQwen2) {
  FakeSource source;
  fillDecoder(source, "qwen2");
  EXPECT_TRUE(contains(buildText(source), "blk.0.attn_q.bias"));
}

} // namespace
} // namespace izhc::test
