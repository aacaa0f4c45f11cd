// Which tensors a recipe gives which format.

#include "compiler/formats/Encode.h"
#include "compiler/formats/Recipes.h"

#include <gtest/gtest.h>

using namespace izhc;

static std::string chosen(const char *recipe, llvm::StringRef tensor,
                          llvm::ArrayRef<int64_t> shape = {512, 512}, bool tied = false) {
  const FormatSpec *format = chooseFormat(*findRecipe(recipe), {tensor, shape, 24, tied});
  return format ? format->name.str() : "as it is";
}

TEST(RecipeTest, NamesFormatsThatCanBeEncoded) {
  for (const Recipe &recipe : allRecipes())
    for (llvm::StringRef name : {recipe.base, recipe.better, recipe.output}) {
      if (name.empty())
        continue;
      const FormatSpec *format = findFormat(name);
      ASSERT_TRUE(format) << recipe.name.str();
      EXPECT_TRUE(canEncode(*format)) << recipe.name.str();
    }
  EXPECT_EQ(findRecipe("no_such_recipe"), nullptr);
}

TEST(RecipeTest, GivesValuesAndTheWayBackMoreBits) {
  EXPECT_EQ(chosen("q4_k_m", "blk.0.attn_q.weight"), "q4_k");
  EXPECT_EQ(chosen("q4_k_m", "blk.0.attn_v.weight"), "q6_k");
  EXPECT_EQ(chosen("q4_k_m", "blk.3.ffn_down.weight"), "q4_k");
  EXPECT_EQ(chosen("q4_k_m", "blk.5.ffn_down.weight"), "q6_k");
  EXPECT_EQ(chosen("q4_k_m", "blk.23.ffn_down_exps.weight", {512, 512, 4}), "q6_k");
  EXPECT_EQ(chosen("q4_k_s", "blk.3.attn_v.weight"), "q5_k");
  EXPECT_EQ(chosen("q4_k_s", "blk.23.attn_v.weight"), "q4_k");
  EXPECT_EQ(chosen("q8_0", "blk.0.attn_v.weight"), "q8_0");
}

TEST(RecipeTest, GivesTheOutputMatrixMoreBits) {
  EXPECT_EQ(chosen("q4_0", "output.weight"), "q6_k");
  EXPECT_EQ(chosen("q4_0", "token_embd.weight"), "q4_0");
  EXPECT_EQ(chosen("q4_0", "token_embd.weight", {512, 512}, true), "q6_k");
}

TEST(RecipeTest, LeavesVectorsRoutersAndConvolutions) {
  EXPECT_EQ(chosen("q4_0", "blk.0.attn_norm.weight", {512}), "as it is");
  EXPECT_EQ(chosen("q4_0", "blk.0.ffn_gate_inp.weight"), "as it is");
  EXPECT_EQ(chosen("q4_0", "blk.0.ssm_conv1d.weight", {4, 512}), "as it is");
}

TEST(RecipeTest, TakesSmallerBlocksWhereRowsAreNoWholeOnes) {
  EXPECT_EQ(chosen("q4_k_m", "blk.0.attn_q.weight", {96, 96}), "q5_0");
  EXPECT_EQ(chosen("q6_k", "blk.0.attn_q.weight", {96, 96}), "q8_0");
  EXPECT_EQ(chosen("q4_0", "blk.0.attn_q.weight", {40, 40}), "as it is");
}
