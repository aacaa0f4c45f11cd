// Models split over several files.

#include "test/unit/compiler/import/open.h"

#include <filesystem>
#include <fstream>
#include <unistd.h>

using namespace izhc;
using namespace izhc::test;

namespace {
class GgufSplitTest : public testing::Test {
protected:
  std::filesystem::path folder = testing::TempDir() + "gguf_split_" + std::to_string(getpid());
  void SetUp() override { std::filesystem::create_directories(folder); }
  void TearDown() override { std::filesystem::remove_all(folder); }

  static GgufWriter part(uint16_t index, uint16_t count, int32_t total) {
    GgufWriter writer;
    writer.number<uint16_t>("split.no", 2, index)
        .number<uint16_t>("split.count", 2, count)
        .number<int32_t>("split.tensors.count", 5, total);
    return writer;
  }
  std::string write(const std::string &name, const GgufWriter &writer) {
    std::string path = folder / name;
    Bytes bytes = writer.build();
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char *>(bytes.data()), bytes.size());
    return path;
  }
};
} // namespace

TEST_F(GgufSplitTest, OpensTheOtherFiles) {
  std::string path = write("m-00001-of-00003.gguf", part(0, 3, 3).string("k", "first"));
  write("m-00002-of-00003.gguf",
        part(1, 3, 3).tensor("a", {4}, 0, Bytes(16, 1)).tensor("b", {4}, 0, Bytes(16, 2)));
  write("m-00003-of-00003.gguf", part(2, 3, 3).tensor("c", {4}, 0, Bytes(16, 3)));
  auto opened = openModel(path);
  ASSERT_TRUE(static_cast<bool>(opened)) << llvm::toString(opened.takeError());
  ModelSource &model = **opened;
  EXPECT_EQ(model.kindName(), "GGUF v3, 3 files");
  EXPECT_EQ(get(model.getString("k")), "first");
  ASSERT_EQ(model.tensors().size(), 3u);
  for (const char *name : {"a", "b", "c"}) {
    const TensorInfo *tensor = llvm::cantFail(model.requireTensor(name));
    EXPECT_EQ(tensor->data[0], name[0] - 'a' + 1);
    model.release(tensor->data, tensor->bytes);
    EXPECT_EQ(tensor->data[15], name[0] - 'a' + 1);
  }
  uint64_t sum = 0;
  for (const auto &entry : std::filesystem::directory_iterator(folder))
    sum += entry.file_size();
  EXPECT_EQ(model.fileBytes(), sum);
}

TEST_F(GgufSplitTest, RefusesAnyFileButTheFirst) {
  std::string path = write("m-00002-of-00002.gguf", part(1, 2, 0));
  std::string text = message(openModel(path));
  EXPECT_NE(text.find("file 2 of 2 of a split model; give the first one, whose name ends in "
                      "-00001-of-00002.gguf"),
            std::string::npos)
      << text;
}

TEST_F(GgufSplitTest, RefusesNamesWithoutThePattern) {
  std::string text = message(openModel(write("m.gguf", part(0, 2, 0))));
  EXPECT_NE(text.find("must end in -00001-of-00002.gguf"), std::string::npos) << text;
}

TEST_F(GgufSplitTest, NamesTheMissingFile) {
  std::string text = message(openModel(write("m-00001-of-00002.gguf", part(0, 2, 0))));
  EXPECT_NE(text.find("m-00002-of-00002.gguf: No such file"), std::string::npos) << text;
}

TEST_F(GgufSplitTest, RefusesFilesThatDontBelongTogether) {
  std::string path = write("m-00001-of-00002.gguf", part(0, 2, 0));
  write("m-00002-of-00002.gguf", part(2, 3, 0));
  std::string text = message(openModel(path));
  EXPECT_NE(text.find("number 2 of 3"), std::string::npos) << text;
}

TEST_F(GgufSplitTest, RefusesWrongTotalsAndTensorsInTwoFiles) {
  std::string path = write("m-00001-of-00002.gguf", part(0, 2, 3).tensor("a", {4}, 0, Bytes(16)));
  write("m-00002-of-00002.gguf", part(1, 2, 3).tensor("b", {4}, 0, Bytes(16)));
  std::string text = message(openModel(path));
  EXPECT_NE(text.find("announces 3 tensors, but its files hold 2"), std::string::npos) << text;
  write("m-00002-of-00002.gguf", part(1, 2, 3).tensor("a", {4}, 0, Bytes(16)));
  text = message(openModel(path));
  EXPECT_NE(text.find("'a' is in two files"), std::string::npos) << text;
}

TEST_F(GgufSplitTest, RefusesImpossibleNumbers) {
  for (const GgufWriter &writer :
       {part(5, 2, 0), GgufWriter().number<uint64_t>("split.count", 10, UINT64_MAX),
        GgufWriter().string("split.count", "2"),
        GgufWriter().number<int32_t>("split.count", 5, -1)}) {
    std::string text = message(openModel(write("m-00001-of-00002.gguf", writer)));
    EXPECT_NE(text, "");
  }
}

TEST_F(GgufSplitTest, AFolderIsNoModelYet) {
  EXPECT_NE(message(openModel(folder.string())).find("folder"), std::string::npos);
}
