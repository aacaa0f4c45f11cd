// Both forms of importance matrices, and files that are neither.

#include "compiler/import/Importance.h"
#include "test/unit/compiler/import/gguf_writer.h"

#include <gtest/gtest.h>

using namespace izhc;
using namespace izhc::test;

static Bytes floats(const std::vector<float> &values) {
  ByteWriter out;
  for (float value : values)
    out.put(value);
  return out.bytes;
}

static Importance read(const Bytes &bytes) {
  auto result = readImportanceBytes("test.imatrix", bytes);
  if (result)
    return std::move(*result);
  ADD_FAILURE() << llvm::toString(result.takeError());
  return Importance();
}

static std::string refusal(const Bytes &bytes) {
  auto result = readImportanceBytes("test.imatrix", bytes);
  return result ? "" : llvm::toString(result.takeError());
}

TEST(ImportanceTest, DividesSumsByCounts) {
  GgufWriter file;
  file.string("general.type", "imatrix");
  file.tensor("a.weight.in_sum2", {2, 2}, 0, floats({2, 4, 30, 0}));
  file.tensor("a.weight.counts", {1, 2}, 0, floats({2, 10}));
  Importance importance = read(file.build());
  EXPECT_EQ(importance.find("a.weight").vec(), (std::vector<float>{1, 2, 3, 0}));
  EXPECT_TRUE(importance.find("b.weight").empty());
}

static ByteWriter list(int32_t entries) { return ByteWriter().put(entries); }

static void entry(ByteWriter &out, const std::string &name, int32_t calls,
                  const std::vector<float> &values) {
  out.put<int32_t>(name.size());
  out.bytes.insert(out.bytes.end(), name.begin(), name.end());
  out.put(calls).put<int32_t>(values.size());
  for (float value : values)
    out.put(value);
}

TEST(ImportanceTest, ReadsTheOlderList) {
  ByteWriter out = list(2);
  entry(out, "a.weight", 4, {4, 8});
  entry(out, "b.weight", 0, {1, 2, 3});
  // What follows is about the texts.
  out.put<int32_t>(7).put<int32_t>(0);
  Importance importance = read(out.bytes);
  EXPECT_EQ(importance.size(), 2u);
  EXPECT_EQ(importance.find("a.weight").vec(), (std::vector<float>{1, 2}));
  EXPECT_EQ(importance.find("b.weight").vec(), (std::vector<float>{1, 2, 3}));
}

TEST(ImportanceTest, RefusesWhatIsNoImportance) {
  EXPECT_NE(refusal({}).find("no importance matrix"), std::string::npos);
  EXPECT_NE(refusal(Bytes(100, 0xff)).find("no importance matrix"), std::string::npos);
  ByteWriter cut = list(1);
  entry(cut, "a.weight", 1, {1, 2, 3});
  cut.bytes.resize(cut.bytes.size() - 1);
  EXPECT_NE(refusal(cut.bytes).find("no importance matrix"), std::string::npos);
  ByteWriter negative = list(1);
  entry(negative, "a.weight", 1, {1, -2});
  EXPECT_NE(refusal(negative.bytes).find("'a.weight'"), std::string::npos);
}

TEST(ImportanceTest, RefusesSumsWithoutCounts) {
  GgufWriter file;
  file.tensor("a.weight.in_sum2", {2}, 0, floats({1, 2}));
  EXPECT_NE(refusal(file.build()).find("must have .in_sum2 and .counts"), std::string::npos);
  EXPECT_NE(refusal(GgufWriter().string("general.type", "model").build()).find("no importance"),
            std::string::npos);
}
