// The JSON that izh-rt writes and the lists that it reads.

#include "tools/izh-rt/Json.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace izh::rt;

namespace {

TEST(JsonTest, EscapesWhatAStringMayNotHold) {
  EXPECT_EQ(jsonString("a\"b\\c\n\t\r\x01"), R"("a\"b\\c\n\t\r\u0001")");
  EXPECT_EQ(jsonString("\xc3\xa9"), "\"\xc3\xa9\"");
  EXPECT_EQ(jsonString(""), "\"\"");
}

TEST(JsonTest, ReplacesBytesThatAreNotUtf8) {
  EXPECT_EQ(jsonString("a\xff"), "\"a\xef\xbf\xbd\"");
  EXPECT_EQ(jsonString("\xc3"), "\"\xef\xbf\xbd\"");
}

TEST(JsonTest, WritesOnlyNumbersThatJsonHas) {
  EXPECT_EQ(jsonNumber(1.5), "1.5");
  EXPECT_EQ(jsonNumber(NAN), "null");
  EXPECT_EQ(jsonNumber(-INFINITY), "null");
}

TEST(JsonTest, WritesObjectsAndLists) {
  EXPECT_EQ(JsonObject().text("a", "x").count("b", 2).add("c", jsonIds({1, -2})).str(),
            R"({"a": "x", "b": 2, "c": [1, -2]})");
  EXPECT_EQ(jsonList({}), "[]");
}

TEST(JsonTest, ReadsListsOfIds) {
  std::vector<int32_t> ids;
  std::string error;
  EXPECT_TRUE(parseIds(" [1, -2 ,\n2147483647,-2147483648] ", &ids, &error));
  EXPECT_EQ(ids, (std::vector<int32_t>{1, -2, 2147483647, -2147483647 - 1}));
  EXPECT_TRUE(parseIds("[ ]", &ids, &error));
  EXPECT_TRUE(ids.empty());
}

TEST(JsonTest, RefusesEverythingElse) {
  std::vector<int32_t> ids;
  for (std::string bad :
       {"", "1", "[", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "[1.5]", "[\"1\"]", "[1]]", "[1] x",
        "[2147483648]", "[-2147483649]", "[99999999999999999999999]", "{}", "[--1]", "[[1]]"}) {
    std::string error;
    EXPECT_FALSE(parseIds(bad, &ids, &error)) << bad;
    EXPECT_NE(error.find("at byte"), std::string::npos) << bad;
  }
}

} // namespace
