// Linear attention beside attention: which rows of stored matrices go where.

#include "test/unit/compiler/import/folder_files.h"
#include "test/unit/compiler/models/fake_source.h"

#include <cmath>
#include <gmock/gmock.h>

namespace izhc::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// 2 key heads, of 2 values if nothing else is said, 4 value heads of 1.
std::string config(const std::string &type, int keyDim = 2, int valueDim = 1) {
  return "{\"model_type\": \"" + type +
         R"(", "hidden_size": 2, "num_attention_heads": 1, "head_dim": 4, "num_hidden_layers": 1,
             "linear_num_key_heads": 2, "linear_num_value_heads": 4, "num_experts": 2,
             "linear_key_head_dim": )" +
         std::to_string(keyDim) + R"(, "linear_value_head_dim": )" + std::to_string(valueDim) + "}";
}

// Rows of two values: twice their number.
std::vector<float> numbered(size_t rows) {
  std::vector<float> values(2 * rows);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = float(i / 2);
  return values;
}

std::vector<float> rowsOf(const ModelSource &model, llvm::StringRef name) {
  std::vector<float> values = floatsOf(*model.findTensor(name)), rows;
  for (size_t i = 0; i < values.size(); i += 2)
    rows.push_back(values[i]);
  return rows;
}

std::vector<float> valuesOf(const ModelSource &model, llvm::StringRef name) {
  return floatsOf(*model.findTensor(name));
}

llvm::Expected<std::unique_ptr<ModelSource>> present(const std::string &config,
                                                     const SafetensorsWriter &weights) {
  static std::list<FolderFiles> kept;
  kept.emplace_back().add("config.json", config).add("model.safetensors", weights.build());
  return presentFolder(llvm::cantFail(kept.back().open()));
}

// A key head's rows: 2 of the query, 2 of the key, 2 values, 2 gates.
TEST(Qwen3NextTest, TakesQueriesKeysValuesAndGatesOfAFolderApart) {
  SafetensorsWriter weights;
  weights.floats("model.layers.0.linear_attn.in_proj_qkvz.weight", "[16, 2]", numbered(16));
  weights.floats("model.layers.0.linear_attn.in_proj_ba.weight", "[8, 2]", numbered(8));
  auto model = present(config("qwen3_next"), weights);
  ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
  EXPECT_THAT(rowsOf(**model, "blk.0.attn_qkv.weight"),
              ElementsAre(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13));
  EXPECT_THAT(rowsOf(**model, "blk.0.attn_gate.weight"), ElementsAre(6, 7, 14, 15));
  EXPECT_THAT(rowsOf(**model, "blk.0.ssm_ba.weight"), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST(Qwen3NextTest, RefusesRowsThatDontFitConfigJson) {
  SafetensorsWriter weights;
  weights.floats("model.layers.0.linear_attn.in_proj_qkvz.weight", "[14, 2]", numbered(14));
  auto model = present(config("qwen3_next"), weights);
  ASSERT_FALSE(bool(model));
  EXPECT_THAT(llvm::toString(model.takeError()),
              HasSubstr("need 16 rows of in_proj_qkvz.weight, but it has 14"));
}

// Two key heads of 3 values, each with two value heads of 2: heads 0 and 1 belong to
// the first. GGUF files have 0, 2, 1, 3.
TEST(Qwen35Test, PutsValueHeadsInTheOrderOfGgufFiles) {
  SafetensorsWriter weights;
  const std::string layer = "model.layers.0.linear_attn.";
  std::vector<float> heads = {0, 1, 2, 3};
  weights.floats(layer + "in_proj_qkv.weight", "[20, 2]", numbered(20));
  weights.floats(layer + "in_proj_z.weight", "[8, 2]", numbered(8));
  weights.floats(layer + "in_proj_a.weight", "[4, 2]", numbered(4));
  weights.floats(layer + "in_proj_b.weight", "[4, 2]", numbered(4));
  weights.floats(layer + "conv1d.weight", "[20, 1, 2]", numbered(20));
  weights.floats(layer + "out_proj.weight", "[1, 8]", {0, 1, 2, 3, 4, 5, 6, 7});
  weights.floats(layer + "A_log", "[4]", heads);
  weights.floats(layer + "dt_bias", "[4]", heads);
  auto model = present(config("qwen3_5_text", 3, 2), weights);
  ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
  auto mixed = ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 16, 17, 14, 15, 18, 19);
  EXPECT_THAT(rowsOf(**model, "blk.0.attn_qkv.weight"), mixed);
  EXPECT_THAT(rowsOf(**model, "blk.0.ssm_conv1d.weight"), mixed);
  EXPECT_THAT(rowsOf(**model, "blk.0.attn_gate.weight"), ElementsAre(0, 1, 4, 5, 2, 3, 6, 7));
  EXPECT_THAT(rowsOf(**model, "blk.0.ssm_alpha.weight"), ElementsAre(0, 2, 1, 3));
  EXPECT_THAT(rowsOf(**model, "blk.0.ssm_beta.weight"), ElementsAre(0, 2, 1, 3));
  EXPECT_THAT(valuesOf(**model, "blk.0.ssm_out.weight"), ElementsAre(0, 1, 4, 5, 2, 3, 6, 7));
  EXPECT_THAT(valuesOf(**model, "blk.0.ssm_dt.bias"), ElementsAre(0, 2, 1, 3));
  EXPECT_THAT(valuesOf(**model, "blk.0.ssm_a"),
              ElementsAre(-1, -std::exp(2.0f), -std::exp(1.0f), -std::exp(3.0f)));
}

TEST(Qwen35MoeTest, TakesGatesAndUpsOfAllExpertsApart) {
  SafetensorsWriter weights;
  weights.floats("model.layers.0.mlp.experts.gate_up_proj", "[2, 4, 2]", numbered(8));
  weights.floats("model.layers.0.mlp.experts.down_proj", "[2, 2, 2]", numbered(4));
  auto model = present(config("qwen3_5_moe_text"), weights);
  ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
  EXPECT_THAT(rowsOf(**model, "blk.0.ffn_gate_exps.weight"), ElementsAre(0, 1, 4, 5));
  EXPECT_THAT(rowsOf(**model, "blk.0.ffn_up_exps.weight"), ElementsAre(2, 3, 6, 7));
  EXPECT_THAT(rowsOf(**model, "blk.0.ffn_down_exps.weight"), ElementsAre(0, 1, 2, 3));
}

} // namespace
} // namespace izhc::test
