// The choice of the variant on made-up machines.

#include "runtime/exec/variant.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "runtime/platform/cpu.h"

namespace izh {
namespace {

uint64_t bitsOf(const char* name) { return uint64_t{1} << cpu_feature_bit(name, strlen(name)); }

struct Variants {
  Variants() {
    const uint64_t avx2 = bitsOf("avx2") | bitsOf("fma");
    add("basic", "x86_64", 0, 10);
    add("avx512vnni", "x86_64", avx2 | bitsOf("avx512vnni"), 30);
    add("avx2", "x86_64", avx2, 20);
    add("neon", "aarch64", bitsOf("neon"), 10);
  }
  void add(const char* name, const char* arch, uint64_t features, uint32_t rank) {
    ASSERT_TRUE(root.variants.push({name, arch, features, rank, 0, 0, {}}));
  }
  izh_status choose(const Machine& machine, const char* variant = nullptr,
                    const char* require = nullptr) {
    const izh_model_options options = {variant, require};
    error = {};
    return variant_choose(root, "m.izh", machine, &options, &chosen, &error);
  }
  std::string reason(const Machine& machine, uint32_t index) {
    char text[256];
    variant_reason(root, machine, index, chosen, text, sizeof(text));
    return text;
  }
  bool says(const char* part) const { return strstr(error.message, part) != nullptr; }

  Root root = {};
  uint32_t chosen = 99;
  izh_error error = {};
};

const Machine kBasic = {"x86_64", 0, nullptr};
const Machine kHaswell = {"x86_64", bitsOf("avx2") | bitsOf("fma"), nullptr};
const Machine kServer = {"x86_64", bitsOf("avx2") | bitsOf("fma") | bitsOf("avx512vnni"), nullptr};

TEST(VariantTest, TakesTheBestThatRuns) {
  Variants variants;
  ASSERT_EQ(variants.choose(kServer), IZH_OK);
  EXPECT_EQ(variants.chosen, 1u);
  ASSERT_EQ(variants.choose(kHaswell), IZH_OK);
  EXPECT_EQ(variants.chosen, 2u);
  ASSERT_EQ(variants.choose(kBasic), IZH_OK);
  EXPECT_EQ(variants.chosen, 0u);
  ASSERT_EQ(variants.choose({"aarch64", bitsOf("neon")}), IZH_OK);
  EXPECT_EQ(variants.chosen, 3u);
}

TEST(VariantTest, SaysWhyOthersWereNotChosen) {
  Variants variants;
  ASSERT_EQ(variants.choose(kHaswell), IZH_OK);
  EXPECT_EQ(variants.reason(kHaswell, 0), "ranks below avx2");
  EXPECT_EQ(variants.reason(kHaswell, 1),
            "needs avx512vnni, which this CPU or its system does not offer");
  EXPECT_EQ(variants.reason(kHaswell, 2), "");
  EXPECT_EQ(variants.reason(kHaswell, 3), "is for aarch64, but this machine is x86_64");
}

TEST(VariantTest, SaysHowCodeForGpusIsRun) {
  Variants variants;
  variants.root.variants[0].arch = "nvptx64";
  EXPECT_NE(variants.reason(kHaswell, 0).find("is for GPUs"), std::string::npos);
}

TEST(VariantTest, SaysWhatTheMachineLacksWhenNoneRuns) {
  Variants variants;
  EXPECT_EQ(variants.choose({"aarch64", 0}), IZH_UNSUPPORTED_CPU);
  EXPECT_TRUE(variants.says("no variant of m.izh runs on this machine")) << variants.error.message;
}

TEST(VariantTest, ChoosesNoneWhereItIsNotToRun) {
  Variants variants;
  const izh_model_options look = {.no_run = true};
  const Machine none = {"aarch64", 0, nullptr};
  ASSERT_EQ(variant_choose(variants.root, "m.izh", none, &look, &variants.chosen, &variants.error),
            IZH_OK);
  EXPECT_EQ(variants.chosen, kNoVariant);
  EXPECT_EQ(variants.reason(none, 0), "is for x86_64, but this machine is aarch64");
  ASSERT_EQ(
      variant_choose(variants.root, "m.izh", kHaswell, &look, &variants.chosen, &variants.error),
      IZH_OK);
  EXPECT_EQ(variants.chosen, 2u);
  const izh_model_options forced = {.variant = "neon", .no_run = true};
  EXPECT_EQ(
      variant_choose(variants.root, "m.izh", kHaswell, &forced, &variants.chosen, &variants.error),
      IZH_UNSUPPORTED_CPU);
}

TEST(VariantTest, ForcesTheOneAskedFor) {
  Variants variants;
  ASSERT_EQ(variants.choose(kServer, "basic"), IZH_OK);
  EXPECT_EQ(variants.chosen, 0u);
  EXPECT_EQ(variants.reason(kServer, 1), "basic was asked for");
  EXPECT_EQ(variants.choose(kHaswell, "avx512vnni"), IZH_UNSUPPORTED_CPU);
  EXPECT_TRUE(variants.says("needs avx512vnni")) << variants.error.message;
  EXPECT_EQ(variants.choose(kHaswell, "avx3"), IZH_INVALID_ARGUMENT);
  EXPECT_TRUE(variants.says("it has basic, avx512vnni, avx2, neon")) << variants.error.message;
}

TEST(VariantTest, HoldsTheChoiceToRequiredFeatures) {
  Variants variants;
  EXPECT_EQ(variants.choose(kServer, nullptr, "fma,avx512vnni"), IZH_OK);
  EXPECT_EQ(variants.choose(kHaswell, nullptr, "avx512vnni"), IZH_UNSUPPORTED_CPU);
  EXPECT_TRUE(variants.says("this CPU or its system does not offer it")) << variants.error.message;
  EXPECT_EQ(variants.choose(kServer, "basic", "avx2"), IZH_UNSUPPORTED_CPU);
  EXPECT_EQ(variants.choose(kServer, nullptr, "avx2,sse9"), IZH_INVALID_ARGUMENT);
  EXPECT_TRUE(variants.says("\"sse9\"")) << variants.error.message;
  EXPECT_TRUE(variants.says("avx512vnni")) << variants.error.message;
}

TEST(VariantTest, NeverChoosesFeaturesThatHaveNoName) {
  Variants variants;
  variants.add("future", "x86_64", uint64_t{1} << 60, 99);
  ASSERT_EQ(variants.choose(kServer), IZH_OK);
  EXPECT_EQ(variants.chosen, 1u);
  EXPECT_NE(variants.reason(kServer, 4).find("feature 60"), std::string::npos);
}

}  // namespace
}  // namespace izh
