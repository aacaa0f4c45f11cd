// What words mean on izh-rt's command line.

#include "tools/izh-rt/Arguments.h"

#include <gtest/gtest.h>

using namespace izh::rt;

namespace {

class ArgumentsTest : public testing::Test {
protected:
  std::string file, text, load = "map";
  std::vector<std::string> stops;
  uint64_t count = 7;
  float heat = 0.5f;
  bool json = false, given = false;
  int status = -1;

  bool parse(std::vector<std::string> words) {
    Arguments arguments("test", "Tests.");
    arguments.positional("FILE", &file, "a file");
    arguments.text("-p,--prompt", "TEXT", &text, &given, "a text");
    arguments.choice("--load", "map|read", &load, "a choice");
    arguments.texts("--stop", "TEXT", &stops, "texts");
    arguments.integer("-n", "N", &count, 1, 100, "a count");
    arguments.number("--temp", "T", &heat, 0, 2, "a number");
    arguments.flag("--json", &json, "a flag");
    std::vector<char *> pointers;
    for (std::string &word : words)
      pointers.push_back(word.data());
    testing::internal::CaptureStderr();
    testing::internal::CaptureStdout();
    bool go = arguments.parse(int(pointers.size()), pointers.data(), &status);
    message = testing::internal::GetCapturedStderr();
    output = testing::internal::GetCapturedStdout();
    return go;
  }
  std::string message, output;
};

TEST_F(ArgumentsTest, TakesOptionsInAnyOrderAndBothForms) {
  ASSERT_TRUE(parse({"-n", "3", "model", "--temp=1.5", "--json", "--prompt", "hi"}));
  EXPECT_EQ(file, "model");
  EXPECT_EQ(count, 3u);
  EXPECT_EQ(heat, 1.5f);
  EXPECT_TRUE(json);
  EXPECT_EQ(text, "hi");
}

TEST_F(ArgumentsTest, TakesOnlyTheWordsOfAChoice) {
  EXPECT_TRUE(parse({"model", "--load=read"}));
  EXPECT_EQ(load, "read");
  for (const char *word : {"", "rea", "map|read", "|", "READ"}) {
    EXPECT_FALSE(parse({"model", "--load", word})) << word;
    EXPECT_EQ(status, kWrongUsage);
    EXPECT_NE(message.find("--load takes map|read"), std::string::npos) << message;
  }
}

TEST_F(ArgumentsTest, KeepsDefaultsOfWhatIsNotGiven) {
  ASSERT_TRUE(parse({"model"}));
  EXPECT_EQ(count, 7u);
  EXPECT_EQ(heat, 0.5f);
  EXPECT_FALSE(json || given);
}

TEST_F(ArgumentsTest, TakesValuesThatLookLikeOptions) {
  ASSERT_TRUE(parse({"model", "-p", "--json"}));
  EXPECT_EQ(text, "--json");
  EXPECT_FALSE(json);
}

TEST_F(ArgumentsTest, TakesAnEmptyValue) {
  ASSERT_TRUE(parse({"model", "-p", ""}));
  EXPECT_TRUE(given);
  EXPECT_EQ(text, "");
}

TEST_F(ArgumentsTest, CollectsOptionsThatMayBeRepeated) {
  ASSERT_TRUE(parse({"model", "--stop", "a", "--stop=b=c"}));
  EXPECT_EQ(stops, (std::vector<std::string>{"a", "b=c"}));
}

TEST_F(ArgumentsTest, EndsOptionsAtTwoDashes) {
  ASSERT_TRUE(parse({"--", "--json"}));
  EXPECT_EQ(file, "--json");
}

TEST_F(ArgumentsTest, PrintsHelpAndEndsWithZero) {
  ASSERT_FALSE(parse({"model", "--help"}));
  EXPECT_EQ(status, kDone);
  EXPECT_NE(output.find("-p,--prompt TEXT"), std::string::npos);
}

TEST_F(ArgumentsTest, RefusesWhatItDoesNotKnow) {
  for (std::vector<std::string> words : {std::vector<std::string>{"model", "--what"},
                                         {"model", "-x"},
                                         {"model", "more"},
                                         {},
                                         {"model", "-n"},
                                         {"model", "--json=1"},
                                         {"model", "--jso"}}) {
    EXPECT_FALSE(parse(words));
    EXPECT_EQ(status, kWrongUsage);
    EXPECT_NE(message, "");
  }
}

TEST_F(ArgumentsTest, RefusesNumbersThatAreNone) {
  for (const char *bad : {"", "0", "101", "-1", "+1", " 1", "1 ", "1.5", "99999999999999999999"}) {
    EXPECT_FALSE(parse({"model", "-n", bad})) << bad;
    EXPECT_EQ(status, kWrongUsage);
  }
  for (const char *bad : {"", "nan", "inf", "3", "-0.1", "1x", " 1"}) {
    EXPECT_FALSE(parse({"model", "--temp", bad})) << bad;
    EXPECT_EQ(status, kWrongUsage);
  }
}

TEST_F(ArgumentsTest, ParsesTheLargestInteger) {
  uint64_t value = 0;
  EXPECT_TRUE(parseInteger("18446744073709551615", 0, UINT64_MAX, &value));
  EXPECT_EQ(value, UINT64_MAX);
  EXPECT_FALSE(parseInteger("18446744073709551616", 0, UINT64_MAX, &value));
}

} // namespace
