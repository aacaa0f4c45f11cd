// Metadata of every type through the getters of ModelSource.

#include "compiler/import/Hash.h"
#include "test/unit/compiler/import/open.h"

#include <limits>

using namespace izhc;
using namespace izhc::test;

TEST(GgufMetadataTest, ReadsVersionsTwoAndThree) {
  for (uint32_t version : {2u, 3u}) {
    GgufWriter writer;
    writer.version = version;
    OpenedModel model = open(writer.u32("a", 7));
    EXPECT_EQ(get(model->getUInt("a")), 7u);
    EXPECT_EQ(model->kindName(), "GGUF v" + std::to_string(version));
  }
}

TEST(GgufMetadataTest, ReadsAllIntegerTypes) {
  OpenedModel model = open(GgufWriter()
                               .number<uint8_t>("u8", 0, 200)
                               .number<int8_t>("i8", 1, -100)
                               .number<uint16_t>("u16", 2, 60000)
                               .number<int16_t>("i16", 3, -30000)
                               .number<uint32_t>("u32", 4, 4000000000u)
                               .number<int32_t>("i32", 5, -2000000000)
                               .number<uint64_t>("u64", 10, UINT64_MAX)
                               .number<int64_t>("i64", 11, INT64_MIN));
  EXPECT_EQ(get(model->getUInt("u8")), 200u);
  EXPECT_EQ(get(model->getInt("i8")), -100);
  EXPECT_EQ(get(model->getUInt("u16")), 60000u);
  EXPECT_EQ(get(model->getInt("i16")), -30000);
  EXPECT_EQ(get(model->getUInt("u32")), 4000000000u);
  EXPECT_EQ(get(model->getInt("i32")), -2000000000);
  EXPECT_EQ(get(model->getUInt("u64")), UINT64_MAX);
  EXPECT_EQ(get(model->getInt("i64")), INT64_MIN);
  EXPECT_EQ(get(model->getFloat("i64")), -0x1p63);
}

TEST(GgufMetadataTest, ReadsFloatsBoolsAndStrings) {
  OpenedModel model = open(GgufWriter()
                               .f32("f32", 0.25f)
                               .number<double>("f64", 12, 1e300)
                               .number<uint8_t>("yes", 7, 1)
                               .number<uint8_t>("no", 7, 0)
                               .string("s", std::string("a\0b", 3))
                               .string("empty", ""));
  EXPECT_EQ(get(model->getFloat("f32")), 0.25);
  EXPECT_EQ(get(model->getFloat("f64")), 1e300);
  EXPECT_TRUE(get(model->getBool("yes")));
  EXPECT_FALSE(get(model->getBool("no")));
  EXPECT_EQ(get(model->getString("s")), llvm::StringRef("a\0b", 3));
  EXPECT_EQ(get(model->getString("empty")), "");
}

TEST(GgufMetadataTest, ReadsArrays) {
  OpenedModel model = open(GgufWriter()
                               .strings("words", {"x", "", "zzz"})
                               .array<float>("floats", 6, {1.5f, -2})
                               .array<int8_t>("i8", 1, {-1, 2})
                               .array<uint8_t>("bools", 7, {0, 1})
                               .array<uint32_t>("none", 4, {}));
  EXPECT_EQ(get(model->getStringArray("words")), (std::vector<llvm::StringRef>{"x", "", "zzz"}));
  EXPECT_EQ(get(model->getFloatArray("floats")), (std::vector<float>{1.5f, -2}));
  EXPECT_EQ(get(model->getFloatArray("i8")), (std::vector<float>{-1, 2}));
  EXPECT_EQ(get(model->getIntArray("i8")), (std::vector<int64_t>{-1, 2}));
  EXPECT_EQ(get(model->getIntArray("bools")), (std::vector<int64_t>{0, 1}));
  EXPECT_TRUE(get(model->getIntArray("none")).empty());
  EXPECT_TRUE(model->isArray("words"));
}

TEST(GgufMetadataTest, StepsOverNestedArrays) {
  ByteWriter nested;
  nested.put<uint32_t>(9).put<uint64_t>(2);
  nested.put<uint32_t>(4).put<uint64_t>(2).put<uint32_t>(1).put<uint32_t>(2);
  nested.put<uint32_t>(8).put<uint64_t>(1).string("deep");
  OpenedModel model = open(GgufWriter().key("nested", 9, nested.bytes).u32("after", 5));
  EXPECT_EQ(get(model->getUInt("after")), 5u);
  EXPECT_NE(message(model->getIntArray("nested")), "");
  EXPECT_EQ(model->metadata()[0].value, "2 arrays");
}

TEST(GgufMetadataTest, AbsentKeysAreNoErrorUnlessRequired) {
  OpenedModel model = open(GgufWriter());
  EXPECT_FALSE(model->hasKey("k"));
  auto value = model->getUInt("k");
  ASSERT_TRUE(static_cast<bool>(value));
  EXPECT_FALSE(value->has_value());
  EXPECT_EQ(llvm::cantFail(model->getUIntOr("k", 3)), 3u);
  EXPECT_EQ(llvm::cantFail(model->getFloatOr("k", 0.5)), 0.5);
  EXPECT_TRUE(llvm::cantFail(model->getBoolOr("k", true)));
  for (const std::string &text :
       {message(model->requireUInt("k")), message(model->requireFloat("k")),
        message(model->requireString("k")), message(model->requireStringArray("k"))})
    EXPECT_NE(text.find("test.gguf: the key 'k' is missing"), std::string::npos) << text;
}

// A wrong type is an error that names both types, with every getter.
TEST(GgufMetadataTest, WrongTypesAreErrors) {
  OpenedModel model = open(GgufWriter()
                               .string("s", "text")
                               .number<int32_t>("minus", 5, -1)
                               .number<uint64_t>("huge", 10, UINT64_MAX)
                               .f32("f", 1)
                               .f32("nan", std::numeric_limits<float>::quiet_NaN())
                               .array<uint64_t>("hugeArray", 10, {UINT64_MAX})
                               .array<float>("floats", 6, {1}));
  EXPECT_EQ(message(model->getUInt("s")),
            "test.gguf: the key 's' is of type string, but an integer is expected");
  for (const char *key : {"s", "minus", "f", "floats"})
    EXPECT_NE(message(model->getUInt(key)), "") << key;
  for (const char *key : {"s", "huge", "f"})
    EXPECT_NE(message(model->getInt(key)), "") << key;
  for (const char *key : {"s", "nan", "floats"})
    EXPECT_NE(message(model->getFloat(key)), "") << key;
  for (const char *key : {"s", "minus"})
    EXPECT_NE(message(model->getBool(key)), "") << key;
  for (const char *key : {"f", "floats"}) {
    EXPECT_NE(message(model->getString(key)), "") << key;
    EXPECT_NE(message(model->getStringArray(key)), "") << key;
  }
  for (const char *key : {"s", "f", "floats", "hugeArray"})
    EXPECT_NE(message(model->getIntArray(key)), "") << key;
  EXPECT_NE(message(model->getFloatArray("s")), "");
}

TEST(GgufMetadataTest, RangesAreChecked) {
  OpenedModel model = open(GgufWriter().u32("k", 7));
  EXPECT_EQ(llvm::cantFail(model->requireUInt("k", 7, 7)), 7u);
  EXPECT_EQ(message(model->requireUInt("k", 8, 9)),
            "test.gguf: the key 'k' is 7, but must lie between 8 and 9");
  EXPECT_NE(message(model->getUIntOr("k", 1, 0, 6)), "");
}

TEST(GgufMetadataTest, DescribesValuesForPeople) {
  OpenedModel model = open(GgufWriter()
                               .f32("f", 1e-6f)
                               .string("s", "a\n")
                               .array<int32_t>("a", 5, {1, -2, 3, 4, 5, 6, 7, 8, 9}));
  std::vector<MetaInfo> list = model->metadata();
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0].value, "1e-06");
  EXPECT_EQ(list[1].value, "'a\\x0A'");
  EXPECT_EQ(list[2].type, "array of i32");
  EXPECT_EQ(list[2].value, "[1, -2, 3, 4, 5, 6, 7, 8, ... (9)]");
}

// The value for no bytes is published with the algorithm.
TEST(GgufMetadataTest, HashIsXxh128OfAllBytes) {
  auto nothing = [](llvm::ArrayRef<uint8_t>) {};
  EXPECT_EQ(hashPieces({}, nothing), "99aa06d3014798d86001c324468d497f");
  Bytes bytes = GgufWriter().u32("k", 1).build();
  llvm::ArrayRef<uint8_t> all = bytes;
  std::string hash = hashPieces({all}, nothing);
  EXPECT_EQ(hash, hashPieces({all.take_front(7), all.drop_front(7)}, nothing));
  EXPECT_EQ(hash, open(GgufWriter().u32("k", 1))->hash());
  bytes.back() ^= 1;
  EXPECT_NE(hash, hashPieces({all}, nothing));
}
