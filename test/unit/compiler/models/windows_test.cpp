// Which layers have a window, from keys and from folders.

#include "compiler/models/blocks/ModelBuilder.h"
#include "compiler/models/blocks/Windows.h"
#include "test/unit/compiler/import/folder_files.h"
#include "test/unit/compiler/models/fake_source.h"
#include <gmock/gmock.h>

namespace izhc::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<bool> layersOf(const FakeSource &source, int64_t window = 8) {
  mlir::MLIRContext context;
  ModelBuilder builder(source, context);
  Hyper hyper;
  hyper.prefix = "toy.";
  hyper.layers = 4;
  hyper.window = window;
  return windowLayers(builder, hyper, 2);
}

TEST(WindowLayersTest, LetsEveryNthLayerSeeAll) {
  FakeSource source;
  EXPECT_THAT(layersOf(source), ElementsAre(true, false, true, false));
  source.numbers["toy.attention.sliding_window_pattern"] = 3;
  EXPECT_THAT(layersOf(source), ElementsAre(true, true, false, true));
}

TEST(WindowLayersTest, TakesOneFlagALayer) {
  FakeSource source;
  source.arrays["toy.attention.sliding_window_pattern"] = {0, 1, 1, 0};
  EXPECT_THAT(layersOf(source), ElementsAre(false, true, true, false));
}

// A window as large as the context hides nothing, but its layers may still
// differ from the others; without one there are none.
TEST(WindowLayersTest, AsksTheKeyWhetherThereAreWindows) {
  FakeSource source;
  EXPECT_THAT(layersOf(source, 0), ElementsAre(false, false, false, false));
  source.numbers["toy.attention.sliding_window"] = 4096;
  EXPECT_THAT(layersOf(source, 0), ElementsAre(true, false, true, false));
}

constexpr llvm::StringRef kTypes[] = {"toy"};
void keys(FolderKeys &keys) {
  keys.assume("num_hidden_layers", Json::of(int64_t(5)));
  windowKeys(keys, 8);
}
const FolderMap kMap = {kTypes, "toy", {}, nullptr, keys};

llvm::Expected<std::unique_ptr<FolderModel>> present(const std::string &config) {
  static std::list<FolderFiles> kept;
  kept.emplace_back()
      .add("config.json", config)
      .add("model.safetensors", SafetensorsWriter().build());
  return FolderModel::create(llvm::cantFail(kept.back().open()), kMap);
}

std::vector<int64_t> flagsOf(const std::string &config) {
  auto model = llvm::cantFail(present(config));
  return *llvm::cantFail(model->getIntArray("toy.attention.sliding_window_pattern"));
}

TEST(WindowKeysTest, TakesLayerTypes) {
  EXPECT_THAT(flagsOf(R"({"layer_types": ["sliding_attention", "full_attention"]})"),
              ElementsAre(1, 0));
}

TEST(WindowKeysTest, RepeatsTextButForTheLastLayer) {
  EXPECT_THAT(flagsOf(R"({"sliding_window_pattern": "LG"})"), ElementsAre(1, 0, 1, 0, 0));
  // What config.json says comes before what is assumed.
  EXPECT_THAT(flagsOf(R"({"sliding_window_pattern": "LG", "num_hidden_layers": 3})"),
              ElementsAre(1, 0, 0));
}

TEST(WindowKeysTest, CopiesANumber) {
  auto model = llvm::cantFail(present(R"({"sliding_window_pattern": 6})"));
  EXPECT_EQ(llvm::cantFail(model->getUInt("toy.attention.sliding_window_pattern")), 6u);
}

TEST(WindowKeysTest, RefusesTextForNoLayers) {
  for (const char *config : {R"({"sliding_window_pattern": ""})",
                             R"({"sliding_window_pattern": "LG", "num_hidden_layers": 0})",
                             R"({"sliding_window_pattern": "LG", "num_hidden_layers": 99999})"}) {
    auto model = present(config);
    ASSERT_FALSE(bool(model)) << config;
    EXPECT_THAT(llvm::toString(model.takeError()), HasSubstr("expected text like LLLG"));
  }
}

} // namespace
} // namespace izhc::test
