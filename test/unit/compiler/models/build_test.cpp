// What architectures make of a well-formed file.

#include "test/unit/compiler/models/fake_source.h"
#include "llvm/Support/Path.h"
#include "gtest/gtest.h"
#include <filesystem>

namespace izhc::test {
namespace {

TEST(ModelRegistryTest, HasOneEntryForEachFileOfTheFolder) {
  size_t files = 0;
  for (auto &entry : std::filesystem::directory_iterator(IZH_SOURCE_DIR "/compiler/models"))
    files += entry.path().extension() == ".cpp" && entry.path().stem() != "Registry";
  EXPECT_EQ(allModels().size(), files);
}

TEST(LlamaTest, TurnsPairsAndHasNoBiases) {
  FakeSource source;
  fillDecoder(source, "llama");
  std::string text = buildText(source);
  EXPECT_TRUE(contains(text, "pairs head_dim 4"));
  EXPECT_FALSE(contains(text, "biases"));
  EXPECT_TRUE(contains(text, "lm.weight \"output.weight\" format \"bf16\" : tensor<10x8xf32>"));
  // 1 / sqrt(4)
  EXPECT_TRUE(contains(text, "heads 2 scale 5.000000e-01"));
  EXPECT_TRUE(contains(text, "-> tensor<?x10xf32>"));
}

TEST(LlamaTest, TellsFacts) {
  FakeSource source;
  fillDecoder(source, "llama");
  source.strings["general.name"] = "tiny";
  ModelFacts facts;
  buildText(source, &facts);
  EXPECT_EQ(facts.architecture, "llama");
  EXPECT_EQ(facts.name, "tiny");
  EXPECT_EQ(facts.vocabulary, 10u);
  EXPECT_EQ(facts.context, 512u);
  EXPECT_EQ(facts.embedding, 8u);
  EXPECT_EQ(facts.layers, 1u);
  EXPECT_EQ(facts.parameters, 2 * 80u + 3 * 8u + 2 * 64u + 2 * 32u + 3 * 128u);
}

TEST(LlamaTest, UsesTheEmbeddingWhereThereIsNoOutput) {
  FakeSource source;
  fillDecoder(source, "llama");
  source.removeTensor("output.weight");
  std::string text = buildText(source);
  EXPECT_TRUE(contains(text, "tensor<10x8xf32>) -> tensor<?x10xf32>"));
  EXPECT_FALSE(contains(text, "\"output.weight\""));
}

TEST(LlamaTest, UsesBiasesThatTheFileHas) {
  FakeSource source;
  fillDecoder(source, "llama");
  source.addTensor("blk.0.attn_output.bias", {8});
  EXPECT_TRUE(contains(buildText(source), "biases"));
}

// 10000^(-2i/4) for i = 0 and 1.
TEST(RopeTest, TakesPowersOfTheBase) {
  FakeSource source;
  fillDecoder(source, "llama");
  EXPECT_TRUE(contains(buildText(source), "[1.000000e+00, 1.000000e-02]"));
  source.numbers["llama.rope.freq_base"] = 16;
  EXPECT_TRUE(contains(buildText(source), "[1.000000e+00, 2.500000e-01]"));
}

TEST(RopeTest, DividesByTheLinearFactor) {
  FakeSource source;
  fillDecoder(source, "llama");
  source.numbers["llama.rope.freq_base"] = 16;
  source.numbers["llama.rope.scaling.factor"] = 2;
  source.strings["llama.rope.scaling.type"] = "linear";
  EXPECT_TRUE(contains(buildText(source), "[5.000000e-01, 1.250000e-01]"));
  source.strings["llama.rope.scaling.type"] = "none";
  EXPECT_TRUE(contains(buildText(source), "[1.000000e+00, 2.500000e-01]"));
}

TEST(RopeTest, DividesByTheTensorOfFactors) {
  FakeSource source;
  fillDecoder(source, "llama");
  source.numbers["llama.rope.freq_base"] = 16;
  const float factors[] = {1, 8};
  source.addTensor("rope_freqs.weight", {2}, "f32", factors);
  EXPECT_TRUE(contains(buildText(source), "[1.000000e+00, 3.125000e-02]"));
}

// Trained for 512 tokens, first for 128. Cosines and sines grow by
// sqrt(1 + ln(512 / 128) / ln(128)) = 1.13389 with either list.
TEST(RopeTest, TakesTheFactorsOfTheLengthThatIsWanted) {
  FakeSource source;
  fillDecoder(source, "phi3");
  for (const char *name : {"attn_q", "attn_k", "attn_v", "ffn_gate", "ffn_up"})
    source.removeTensor(std::string("blk.0.") + name + ".weight");
  source.addTensor("blk.0.attn_qkv.weight", {8, 16}, "f16");
  source.addTensor("blk.0.ffn_up.weight", {8, 32}, "f16");
  source.numbers["phi3.rope.freq_base"] = 16;
  source.numbers["phi3.rope.scaling.original_context_length"] = 128;
  source.strings["phi3.rope.scaling.type"] = "longrope";
  const float few[] = {1, 2}, many[] = {4, 8};
  source.addTensor("rope_factors_short.weight", {2}, "f32", few);
  source.addTensor("rope_factors_long.weight", {2}, "f32", many);
  const char *shortOnes = "[1.000000e+00, 1.250000e-01]",
             *longOnes = "[2.500000e-01, 3.125000e-02]";
  const std::pair<uint32_t, uint32_t> contexts[] = {
      {0, 128}, {64, 64}, {128, 128}, {129, 129}, {512, 512}};
  for (auto [tokens, context] : contexts) {
    ModelFacts facts;
    std::string text = buildText(source, &facts, tokens);
    EXPECT_TRUE(contains(text, tokens > 128 ? longOnes : shortOnes)) << tokens;
    EXPECT_TRUE(contains(text, "1.13389")) << tokens;
    EXPECT_EQ(facts.context, context);
    EXPECT_EQ(facts.longest, 512u);
  }
  EXPECT_TRUE(
      contains(buildText(source, nullptr, 513), "--context=513 is more than the 512 tokens"));
}

TEST(RopeTest, TurnsAPartOfTheHead) {
  FakeSource source;
  fillDecoder(source, "llama");
  source.numbers["llama.rope.dimension_count"] = 2;
  EXPECT_TRUE(contains(buildText(source), "[1.000000e+00] : tensor<1xf32>"));
}

TEST(Qwen2Test, HasBiasesAndTurnsHalves) {
  FakeSource source;
  fillDecoder(source, "qwen2");
  for (auto [name, count] : {std::pair("q", 8), std::pair("k", 4), std::pair("v", 4)})
    source.addTensor(std::string("blk.0.attn_") + name + ".bias", {count});
  std::string text = buildText(source);
  EXPECT_TRUE(contains(text, "halves head_dim 4"));
  EXPECT_TRUE(contains(text, "biases"));
}

TEST(Qwen3Test, NormsHeadsOfTheirOwnSize) {
  FakeSource source;
  fillDecoder(source, "qwen3");
  source.numbers["qwen3.attention.key_length"] = 6;
  source.numbers["qwen3.attention.value_length"] = 6;
  for (const char *name : {"attn_q", "attn_k", "attn_v", "attn_output"})
    source.removeTensor(std::string("blk.0.") + name + ".weight");
  source.addTensor("blk.0.attn_q.weight", {8, 12}, "f16");
  source.addTensor("blk.0.attn_k.weight", {8, 6}, "f16");
  source.addTensor("blk.0.attn_v.weight", {8, 6}, "f16");
  source.addTensor("blk.0.attn_output.weight", {12, 8}, "f16");
  source.addTensor("blk.0.attn_q_norm.weight", {6});
  source.addTensor("blk.0.attn_k_norm.weight", {6});
  std::string text = buildText(source);
  EXPECT_TRUE(contains(text, "over 6 eps 9.99999974E-6 : tensor<?x12xf32>, tensor<6xf32>"));
  EXPECT_TRUE(contains(text, "over 6 eps 9.99999974E-6 : tensor<?x6xf32>, tensor<6xf32>"));
  EXPECT_TRUE(contains(text, "halves head_dim 6"));
  EXPECT_TRUE(contains(text, "!lm.kv_cache<1 x 6>"));
}

// The layer sees all tokens. Beside layers with a window it would not turn
// anything, even if the window is larger than the context.
TEST(Exaone4Test, TurnsAllLayersOnlyWhereNoneHasAWindow) {
  FakeSource source;
  fillDecoder(source, "exaone4");
  source.removeTensor("blk.0.attn_norm.weight");
  source.removeTensor("blk.0.ffn_norm.weight");
  source.addTensor("blk.0.post_attention_norm.weight", {8});
  source.addTensor("blk.0.post_ffw_norm.weight", {8});
  source.addTensor("blk.0.attn_q_norm.weight", {4});
  source.addTensor("blk.0.attn_k_norm.weight", {4});
  source.arrays["exaone4.attention.sliding_window_pattern"] = {0};
  EXPECT_TRUE(contains(buildText(source), "lm.rope %"));
  for (double window : {8, 4096}) {
    source.numbers["exaone4.attention.sliding_window"] = window;
    std::string text = buildText(source);
    EXPECT_TRUE(contains(text, "lm.attention %")) << text;
    EXPECT_FALSE(contains(text, "lm.rope %"));
  }
}

TEST(HyperTest, TakesEqualNumbersForAllLayers) {
  FakeSource source;
  fillDecoder(source, "llama");
  source.numbers.erase("llama.attention.head_count_kv");
  source.arrays["llama.attention.head_count_kv"] = {1, 1};
  EXPECT_TRUE(contains(buildText(source), "!lm.kv_cache<1 x 4>"));
}

} // namespace
} // namespace izhc::test
