// Stop strings that arrive in pieces.

#include "tools/izh-rt/StopFinder.h"

#include <gtest/gtest.h>

using namespace izh::rt;

namespace {

struct Result {
  std::string shown;
  bool stopped = false;
};

Result run(std::vector<std::string> stops, std::vector<std::string> pieces) {
  StopFinder finder(std::move(stops));
  Result result;
  for (const std::string &piece : pieces) {
    result.shown += finder.feed(piece, &result.stopped);
    if (result.stopped)
      return result;
  }
  result.shown += finder.finish();
  return result;
}

TEST(StopFinderTest, ShowsEverythingAtOnceWithoutStops) {
  StopFinder finder({});
  bool stopped = true;
  EXPECT_EQ(finder.feed("abc", &stopped), "abc");
  EXPECT_FALSE(stopped);
  EXPECT_EQ(finder.finish(), "");
}

TEST(StopFinderTest, FindsAStringThatIsSplit) {
  Result result = run({"END"}, {"text E", "N", "D more"});
  EXPECT_TRUE(result.stopped);
  EXPECT_EQ(result.shown, "text ");
}

TEST(StopFinderTest, HoldsBackNoMoreThanABeginning) {
  StopFinder finder({"END"});
  bool stopped = false;
  EXPECT_EQ(finder.feed("abEN", &stopped), "ab");
  EXPECT_EQ(finder.feed("x", &stopped), "ENx");
}

TEST(StopFinderTest, ShowsABeginningAtTheEndOfTheText) {
  Result result = run({"END"}, {"a", "EN"});
  EXPECT_FALSE(result.stopped);
  EXPECT_EQ(result.shown, "aEN");
}

TEST(StopFinderTest, FindsAStringBehindItsOwnBeginning) {
  Result result = run({"aab"}, {"a", "a", "a", "b"});
  EXPECT_TRUE(result.stopped);
  EXPECT_EQ(result.shown, "a");
}

TEST(StopFinderTest, StopsAtTheFirstOfSeveral) {
  Result result = run({"two", "one"}, {"zero one two"});
  EXPECT_TRUE(result.stopped);
  EXPECT_EQ(result.shown, "zero ");
}

} // namespace
