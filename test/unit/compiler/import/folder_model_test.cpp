// Folders seen through a map: names, stacked experts, moved rows and values.

#include "test/unit/compiler/import/folder_files.h"

#include <cmath>
#include <gmock/gmock.h>

using namespace izhc;
using namespace izhc::test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

llvm::Expected<std::vector<int64_t>> evenOnes(const FolderSource &, int64_t count) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < count; i += 2)
    order.push_back(i);
  return order;
}

llvm::Expected<int64_t> inTwo(const FolderSource &) { return 2; }

constexpr TensorRule kRules[] = {
    {"blk.*.norm", "model.layers.*.norm", Change::PlusOne},
    {"blk.*.decay", "model.layers.*.decay", Change::NegativeExp},
    {"blk.*.exps", "model.layers.*.experts.#.up"},
    {"blk.*.even", "model.layers.*.both", Change::None, evenOnes},
    {"blk.*.turned", "model.layers.*.turned", Change::Transpose},
    {"blk.*.heads", "model.layers.*.heads", Change::Transpose, nullptr, evenOnes, inTwo},
    {"", "old.**"},
};
constexpr llvm::StringRef kTypes[] = {"toy"};
void keys(FolderKeys &keys) {
  keys.copyCount("width", "hidden_size|n_embd");
  keys.set("windows", keys.equals("layer_types", "sliding", "full"));
}
const FolderMap kMap = {kTypes, "toy", kRules, nullptr, keys};

llvm::Expected<std::unique_ptr<FolderModel>> present(const SafetensorsWriter &weights,
                                                     const std::string &config = "{}") {
  static std::list<FolderFiles> kept;
  kept.emplace_back().add("config.json", config).add("model.safetensors", weights.build());
  return FolderModel::create(llvm::cantFail(kept.back().open()), kMap);
}

} // namespace

TEST(FolderModelTest, TurnsConfigIntoKeysOfTheArchitecture) {
  auto model = present({}, R"({"n_embd": 8, "text_config": {"layer_types": ["sliding", "full"]}})");
  ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
  EXPECT_EQ(get((*model)->getString("general.architecture")), "toy");
  EXPECT_EQ(get((*model)->getUInt("toy.width")), 8u);
  EXPECT_THAT(get((*model)->getIntArray("toy.windows")), ElementsAre(1, 0));
}

TEST(FolderModelTest, ChangesValuesAndOrder) {
  SafetensorsWriter weights;
  weights.floats("model.layers.3.norm", "[2]", {-1, 0.5})
      .floats("model.layers.3.decay", "[1]", {0})
      .floats("model.layers.3.both", "[3, 2]", {1, 2, 3, 4, 5, 6})
      .floats("model.layers.3.turned", "[2, 2, 3]", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
      .floats("old.thing", "[1]", {0});
  auto model = present(weights);
  ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
  EXPECT_THAT(floatsOf(*(*model)->findTensor("blk.3.norm")), ElementsAre(0, 1.5));
  EXPECT_THAT(floatsOf(*(*model)->findTensor("blk.3.decay")), ElementsAre(-1));
  EXPECT_THAT(floatsOf(*(*model)->findTensor("blk.3.even")), ElementsAre(1, 2, 5, 6));
  const TensorInfo *turned = (*model)->findTensor("blk.3.turned");
  EXPECT_THAT(turned->shape, ElementsAre(2, 3, 2));
  EXPECT_THAT(floatsOf(*turned), ElementsAre(1, 4, 2, 5, 3, 6, 7, 10, 8, 11, 9, 12));
  EXPECT_EQ((*model)->findTensor("old.thing"), nullptr);
}

TEST(FolderModelTest, StacksExpertsByNumber) {
  SafetensorsWriter weights;
  weights.floats("model.layers.0.experts.1.up", "[2, 2]", {5, 6, 7, 8})
      .floats("model.layers.0.experts.0.up", "[2, 2]", {1, 2, 3, 4});
  auto model = present(weights);
  ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
  const TensorInfo *experts = (*model)->findTensor("blk.0.exps");
  EXPECT_THAT(experts->shape, ElementsAre(2, 2, 2));
  EXPECT_THAT(floatsOf(*experts), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
}

TEST(FolderModelTest, SplitsAMatrixIntoAStack) {
  SafetensorsWriter weights, odd;
  weights.floats("model.layers.0.heads", "[4, 2]", {1, 2, 3, 4, 5, 6, 7, 8});
  auto model = present(weights);
  ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
  const TensorInfo *heads = (*model)->findTensor("blk.0.heads");
  EXPECT_THAT(heads->shape, ElementsAre(1, 2, 2));
  EXPECT_THAT(floatsOf(*heads), ElementsAre(1, 2, 5, 6));
  odd.floats("model.layers.0.heads", "[3, 1]", {1, 2, 3});
  EXPECT_THAT(message(present(odd)), HasSubstr("can't be 2 matrices of equal size"));
}

TEST(FolderModelTest, RefusesStacksWithHolesAndKeepsUnknownNames) {
  SafetensorsWriter hole, unknown;
  hole.floats("model.layers.0.experts.1.up", "[1]", {1});
  EXPECT_THAT(message(present(hole)), HasSubstr("number 0 is missing"));
  unknown.floats("model.layers.0.news", "[1]", {1});
  auto model = present(unknown);
  ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
  EXPECT_NE((*model)->findTensor("model.layers.0.news"), nullptr);
}
