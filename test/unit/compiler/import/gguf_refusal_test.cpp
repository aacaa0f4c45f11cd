// Files that are no GGUF, contradict themselves or are cut: each is refused
// with a sentence, and none costs time or memory.

#include "test/unit/compiler/import/open.h"

using namespace izhc;
using namespace izhc::test;

// The message, which must name the file and hold `part`.
static void expectRefusal(const std::string &message, const char *part) {
  EXPECT_EQ(message.rfind("test.gguf: ", 0), 0u) << message;
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST(GgufRefusalTest, OtherFiles) {
  expectRefusal(refusal(Bytes{}), "no GGUF file");
  expectRefusal(refusal(Bytes{'P', 'K', 3, 4, 0, 0}), "begins with 'PK\\x03\\x04'");
}

TEST(GgufRefusalTest, OtherVersions) {
  GgufWriter writer;
  for (uint32_t version : {0u, 1u, 4u, 70000u}) {
    writer.version = version;
    expectRefusal(refusal(writer), "reads versions 2 and 3");
  }
  writer.version = 0x03000000;
  expectRefusal(refusal(writer), "big-endian");
}

TEST(GgufRefusalTest, ImpossibleCounts) {
  GgufWriter writer;
  writer.keyCount = UINT64_MAX;
  expectRefusal(refusal(writer), "announces 18446744073709551615 metadata keys");
  writer.keyCount = 1;
  expectRefusal(refusal(writer), "ends at byte 24 inside of the metadata");
  writer.keyCount = 0;
  writer.tensorCount = UINT64_MAX / 2;
  expectRefusal(refusal(writer), "tensors, but at most");
  writer.tensorCount = 1;
  Bytes header = writer.build();
  header.resize(24);
  expectRefusal(refusal(header), "inside of the list of tensors");
}

TEST(GgufRefusalTest, LengthsBeyondTheFile) {
  for (uint64_t length : {uint64_t(100), UINT64_MAX, UINT64_MAX - 8}) {
    Bytes text = ByteWriter().put(length).bytes;
    expectRefusal(refusal(GgufWriter().key("k", 8, text)), "the value of 'k'");
    Bytes strings = ByteWriter().put<uint32_t>(8).put(length).bytes;
    expectRefusal(refusal(GgufWriter().key("k", 9, strings)), "the value of 'k'");
    Bytes numbers = ByteWriter().put<uint32_t>(12).put(length).bytes;
    expectRefusal(refusal(GgufWriter().key("k", 9, numbers)), "the value of 'k'");
    Bytes arrays = ByteWriter().put<uint32_t>(9).put(length).bytes;
    expectRefusal(refusal(GgufWriter().key("k", 9, arrays)), "the metadata");
  }
}

TEST(GgufRefusalTest, ArraysNestedTooDeep) {
  ByteWriter nested;
  for (int i = 0; i < 1000; ++i)
    nested.put<uint32_t>(9).put<uint64_t>(1);
  expectRefusal(refusal(GgufWriter().key("k", 9, nested.bytes)), "nested more than 4 deep");
}

TEST(GgufRefusalTest, UnknownMetadataTypes) {
  expectRefusal(refusal(GgufWriter().key("k", 13, {})), "'k' has type number 13");
  Bytes array = ByteWriter().put<uint32_t>(99).put<uint64_t>(0).bytes;
  expectRefusal(refusal(GgufWriter().key("k", 9, array)), "'k' has type number 99");
}

TEST(GgufRefusalTest, Duplicates) {
  expectRefusal(refusal(GgufWriter().u32("k", 1).u32("k", 2)), "'k' appears twice");
  expectRefusal(refusal(GgufWriter().tensor("t", {4}, 0, Bytes(16)).tensor("t", {4}, 0, Bytes(16))),
                "'t' appears twice");
}

TEST(GgufRefusalTest, EmptyAndEndlessNames) {
  expectRefusal(refusal(GgufWriter().u32("", 1)), "a metadata key has 0 bytes");
  expectRefusal(refusal(GgufWriter().u32(std::string(70000, 'k'), 1)), "70000 bytes");
  expectRefusal(refusal(GgufWriter().tensor("", {4}, 0, Bytes(16))), "name has 0 bytes");
  expectRefusal(refusal(GgufWriter().tensor(std::string(300, 't'), {4}, 0, Bytes(16))),
                "name has 300 bytes");
}

TEST(GgufRefusalTest, Alignments) {
  for (uint32_t alignment : {0u, 1u, 4u, 24u, 0xffffffffu})
    expectRefusal(refusal(GgufWriter().u32("general.alignment", alignment)),
                  "must be a power of two");
  expectRefusal(refusal(GgufWriter().string("general.alignment", "32")), "must be a u32");
  // Far beyond the file's end.
  expectRefusal(
      refusal(GgufWriter().u32("general.alignment", 1u << 31).tensor("t", {4}, 0, Bytes(16))),
      "padding before the tensors' data");
}

TEST(GgufRefusalTest, Shapes) {
  expectRefusal(refusal(GgufWriter().tensor("t", {}, 0, {})), "has 0 dimensions");
  expectRefusal(refusal(GgufWriter().tensor("t", {1, 1, 1, 1, 1}, 0, Bytes(4))),
                "has 5 dimensions");
  expectRefusal(refusal(GgufWriter().tensor("t", {4, 0}, 0, Bytes(16))),
                "dimension 1 of the tensor 't' is 0");
  uint64_t half = uint64_t(1) << 32;
  for (const std::vector<uint64_t> &shape :
       {std::vector<uint64_t>{UINT64_MAX}, {half, half}, {half, half / 2}, {3, half, half}})
    expectRefusal(refusal(GgufWriter().tensor("t", shape, 0, Bytes(16))), "which is impossible");
  expectRefusal(refusal(GgufWriter().tensor("t", {33}, 2, Bytes(36))),
                "33 columns, but its type q4_0 needs a multiple of 32");
}

TEST(GgufRefusalTest, DataOutsideOfTheFile) {
  // Elements fit in 63 bits, their bytes don't fit in 64.
  expectRefusal(refusal(GgufWriter().tensor("t", {uint64_t(1) << 62}, 0, Bytes(16))),
                "the data section has 16 bytes");
  expectRefusal(refusal(GgufWriter().tensor("t", {5}, 0, Bytes(16))), "needs 20 bytes");
  for (uint64_t offset : {uint64_t(32), UINT64_MAX - 31})
    expectRefusal(refusal(GgufWriter().tensorAt("t", {4}, 0, offset)),
                  "the data section has 0 bytes");
  expectRefusal(refusal(GgufWriter().tensorAt("t", {4}, 777, 32)), "data section");
  GgufWriter odd;
  odd.data = Bytes(64);
  expectRefusal(refusal(odd.tensorAt("t", {4}, 0, 8)), "no multiple of the alignment 32");
}

TEST(GgufRefusalTest, TensorsThatOverlap) {
  GgufWriter writer;
  writer.data = Bytes(128);
  writer.tensorAt("a", {16}, 0, 32).tensorAt("b", {4}, 0, 64);
  expectRefusal(refusal(writer), "'a' and 'b' overlap");
}

// A file with a bit of everything ends in a sentence at every length.
TEST(GgufRefusalTest, EveryTruncation) {
  Bytes whole = GgufWriter()
                    .string("general.architecture", "test")
                    .u32("general.alignment", 32)
                    .strings("words", {"one", "two"})
                    .array<float>("floats", 6, {1, 2, 3})
                    .tensor("a", {32, 2}, 2, Bytes(36))
                    .tensor("b", {4}, 0, Bytes(16))
                    .build();
  ASSERT_TRUE(static_cast<bool>(openGgufBytes("test.gguf", whole)));
  for (size_t length = 0; length < whole.size(); ++length) {
    // A copy of that very length, so that tools see reads beyond it.
    Bytes cut(whole.begin(), whole.begin() + length);
    std::string text = refusal(cut);
    EXPECT_EQ(text.rfind("test.gguf: the ", 0), 0u) << text;
  }
}
