// Reading model folders as they are, and refusing files that lie.

#include "test/unit/compiler/import/folder_files.h"

#include <cmath>
#include <gmock/gmock.h>

using namespace izhc;
using namespace izhc::test;
using testing::ElementsAre;
using testing::HasSubstr;

static std::string refuse(const std::string &header, size_t body = 8) {
  SafetensorsWriter writer;
  writer.add("filling", "U8", "[1]", Bytes(body));
  writer.header = header;
  return FolderFiles().add("config.json", "{}").add("model.safetensors", writer.build()).refusal();
}

static std::string entry(const std::string &shape, const std::string &offsets,
                         const std::string &type = "F32") {
  return "{\"a\": {\"dtype\": \"" + type + "\", \"shape\": " + shape +
         ", \"data_offsets\": " + offsets + "}}";
}

TEST(FolderSourceTest, ReadsKeysAndTensors) {
  FolderFiles folder;
  folder
      .add("config.json", R"({"size": 3, "rope": {"theta": 1e4}, "kinds": ["a", "b"], "no": null})")
      .add("model.safetensors",
           SafetensorsWriter().floats("m.weight", "[2, 3]", {1, 2, 3, 4, 5, 6}).build());
  auto source = folder.open();
  ASSERT_TRUE(bool(source)) << llvm::toString(source.takeError());
  EXPECT_EQ(get((*source)->getUInt("size")), 3u);
  EXPECT_EQ(get((*source)->getFloat("rope.theta")), 1e4);
  EXPECT_THAT(get((*source)->getStringArray("kinds")), ElementsAre("a", "b"));
  EXPECT_FALSE((*source)->hasKey("no"));
  const TensorInfo *tensor = (*source)->findTensor("m.weight");
  ASSERT_NE(tensor, nullptr);
  EXPECT_THAT(tensor->shape, ElementsAre(3, 2));
  EXPECT_THAT(floatsOf(*tensor), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(FolderSourceTest, RefusesHeadersThatDoNotFitTheFile) {
  EXPECT_THAT(refuse(entry("[3]", "[0, 12]")), HasSubstr("ends at byte 12"));
  EXPECT_THAT(refuse(entry("[3]", "[0, 8]")), HasSubstr("need 12"));
  EXPECT_THAT(refuse(entry("[2]", "[8, 0]")), HasSubstr("no begin and end"));
  EXPECT_THAT(refuse(entry("[-1]", "[0, 8]")), HasSubstr("impossible"));
  EXPECT_THAT(refuse(entry("[4294967296, 4294967296]", "[0, 8]")), HasSubstr("impossible"));
  EXPECT_THAT(refuse(entry("[1.5]", "[0, 8]")), HasSubstr("impossible"));
  EXPECT_THAT(refuse("[1]"), HasSubstr("no JSON object"));
  EXPECT_THAT(refuse("{\"a\": "), HasSubstr("no valid JSON"));
  EXPECT_THAT(refuse(std::string(100, '[')), HasSubstr("nested deeper than 64"));
  EXPECT_THAT(refuse("{\"a\": 1, \"a\": 2}"), HasSubstr("appears twice"));
  EXPECT_THAT(refuse(R"({"a": {"dtype": "U8", "shape": [8], "data_offsets": [0, 8]},
                        "b": {"dtype": "U8", "shape": [4], "data_offsets": [4, 8]}})"),
              HasSubstr("overlap"));
  FolderFiles shortFile;
  shortFile.add("config.json", "{}").add("model.safetensors", Bytes{255, 0, 0, 0, 0, 0, 0, 0});
  EXPECT_THAT(shortFile.refusal(), HasSubstr("incomplete"));
}

TEST(FolderSourceTest, ReadsShardsAndMissesOnes) {
  Bytes a = SafetensorsWriter().floats("a", "[1]", {1}).build();
  Bytes b = SafetensorsWriter().floats("b", "[1]", {2}).build();
  std::string index = R"({"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}})";
  FolderFiles whole, part;
  whole.add("config.json", "{}").add("model.safetensors.index.json", index);
  whole.add("model-1.safetensors", a).add("model-2.safetensors", b);
  auto source = whole.open();
  ASSERT_TRUE(bool(source)) << llvm::toString(source.takeError());
  EXPECT_THAT(floatsOf(*(*source)->findTensor("b")), ElementsAre(2));
  part.add("config.json", "{}").add("model.safetensors.index.json", index);
  part.add("model-1.safetensors", a);
  EXPECT_THAT(part.refusal(), HasSubstr("model-2.safetensors"));
}

// E4M3: 0x38 is 1, 0x40 is 2, 0xb8 is -1, 0x01 is 2^-9.
TEST(FolderSourceTest, MultipliesEightBitFloatsByTheFactorsOfTheirBlocks) {
  FolderFiles folder;
  folder.add("config.json", R"({"quantization_config": {"weight_block_size": [1, 2]}})")
      .add("model.safetensors",
           SafetensorsWriter()
               .floats("w.weight_scale_inv", "[2, 2]", {1, 10, 100, 1000})
               .add("w.weight", "F8_E4M3", "[2, 3]", {0x38, 0x40, 0xb8, 0x01, 0x38, 0x40})
               .build());
  auto source = folder.open();
  ASSERT_TRUE(bool(source)) << llvm::toString(source.takeError());
  ASSERT_EQ((*source)->tensors().size(), 1u);
  EXPECT_THAT(floatsOf((*source)->tensors()[0]),
              ElementsAre(1, 2, -10, 100 * std::ldexp(1.0f, -9), 100, 2000));
}

TEST(FolderSourceTest, RefusesFactorsThatDoNotCoverTheMatrix) {
  FolderFiles folder;
  folder.add("config.json", "{}")
      .add("model.safetensors", SafetensorsWriter()
                                    .floats("w.weight_scale_inv", "[2, 2]", {1, 1, 1, 1})
                                    .add("w.weight", "F8_E4M3", "[2, 3]", Bytes(6))
                                    .build());
  EXPECT_THAT(folder.refusal(), HasSubstr("has 4 factors"));
}
