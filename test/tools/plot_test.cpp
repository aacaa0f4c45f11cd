// Plots of the benchmark: numbers land where they belong, whatever they are.

#include "tools/izh-rt/Plot.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace izh::rt;

namespace {

size_t count(const std::string &text, const std::string &part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

// Tags are closed in order, and attributes quoted. Enough for what is written here.
bool wellFormed(const std::string &text) {
  std::vector<std::string> open;
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '<')
      continue;
    size_t end = text.find('>', at);
    if (end == std::string::npos)
      return false;
    std::string tag = text.substr(at + 1, end - at - 1);
    if (count(tag, "\"") % 2 || tag.find('<') != std::string::npos)
      return false;
    std::string name = tag.substr(0, tag.find_first_of(" />", 1));
    if (tag[0] == '/') {
      if (open.empty() || "/" + open.back() != tag)
        return false;
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
    at = end;
  }
  return open.empty();
}

Plot plotOf(std::vector<std::pair<double, double>> points) {
  return {"a title", "x", "y", {{"line", std::move(points), false}}};
}

TEST(PlotTest, PutsPointsBetweenTheAxes) {
  // Both axes end at 100; the frame goes from (74, 384) to (736, 74).
  std::string svg = plotSvg(plotOf({{0, 0}, {50, 50}, {100, 100}}));
  EXPECT_TRUE(wellFormed(svg)) << svg;
  EXPECT_NE(svg.find("M74.0 384.0L405.0 229.0L736.0 74.0"), std::string::npos) << svg;
  EXPECT_EQ(count(svg, "<circle"), 3u);
}

TEST(PlotTest, LeavesOutWhatIsNoNumber) {
  std::string svg = plotSvg(plotOf({{0, NAN}, {1, INFINITY}, {NAN, 1}, {2, 3}}));
  EXPECT_TRUE(wellFormed(svg)) << svg;
  EXPECT_EQ(count(svg, "<circle"), 1u);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

TEST(PlotTest, DrawsNothingAndOnePoint) {
  EXPECT_TRUE(wellFormed(plotSvg({})));
  EXPECT_TRUE(wellFormed(plotSvg(plotOf({}))));
  EXPECT_EQ(count(plotSvg(plotOf({{0, 0}})), "<circle"), 1u);
}

TEST(PlotTest, NamesAreText) {
  Plot plot = plotOf({{1, 1}});
  plot.title = "<script>\"&'\n\xff</script>";
  plot.series[0].name = "a < b";
  std::string svg = plotSvg(plot);
  EXPECT_TRUE(wellFormed(svg)) << svg;
  EXPECT_EQ(svg.find("<script"), std::string::npos);
  EXPECT_EQ(escapeXml("<\"&'\n\xff>"), "&lt;&quot;&amp;&#39;??&gt;");
}

TEST(PlotTest, TicksAreRoundAndReachTheGreatest) {
  EXPECT_EQ(axisTicks(100), (std::vector<double>{0, 20, 40, 60, 80, 100}));
  EXPECT_EQ(axisTicks(7), (std::vector<double>{0, 2, 4, 6, 8}));
  EXPECT_EQ(axisTicks(0), axisTicks(1));
  EXPECT_EQ(axisTicks(NAN), axisTicks(1));
  for (double most : {0.003, 0.9, 1.0, 3.3, 12.0, 32768.0, 1e9}) {
    std::vector<double> ticks = axisTicks(most);
    EXPECT_GE(ticks.back(), most * (1 - 1e-9));
    EXPECT_LE(ticks.size(), 8u) << most;
    EXPECT_GE(ticks.size(), 3u) << most;
  }
}

} // namespace
