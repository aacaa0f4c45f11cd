// Agreement on rows small enough to work out by hand.

#include "tools/izhc/Agreement.h"
#include "tools/izhc/QualityPlot.h"
#include "gtest/gtest.h"
#include <cmath>

namespace izhc::tool {
namespace {

std::vector<double> logs(std::initializer_list<double> probabilities) {
  std::vector<double> out;
  for (double p : probabilities)
    out.push_back(std::log(p));
  return out;
}

TEST(LogSoftmaxTest, GivesLogarithmsOfProbabilities) {
  std::vector<double> out;
  ASSERT_TRUE(logSoftmax({0.0f, std::log(3.0f)}, out));
  EXPECT_NEAR(out[0], std::log(0.25), 1e-7);
  EXPECT_NEAR(out[1], std::log(0.75), 1e-7);
}

TEST(LogSoftmaxTest, StandsLargeLogits) {
  std::vector<double> out;
  ASSERT_TRUE(logSoftmax({30000.0f, 30000.0f, -INFINITY}, out));
  EXPECT_NEAR(out[0], std::log(0.5), 1e-12);
  EXPECT_EQ(out[2], -INFINITY);
}

TEST(LogSoftmaxTest, RefusesWhatIsNoNumber) {
  std::vector<double> out;
  EXPECT_FALSE(logSoftmax({0.0f, NAN}, out));
  EXPECT_FALSE(logSoftmax({0.0f, INFINITY}, out));
  EXPECT_FALSE(logSoftmax({-INFINITY, -INFINITY}, out));
}

TEST(AgreementTest, MeasuresDivergenceFromTheReference) {
  Agreement agreement;
  agreement.add(logs({0.5, 0.5}), logs({0.25, 0.75}), 0);
  // 0.5 ln 2 + 0.5 ln (2/3)
  EXPECT_NEAR(agreement.divergence().value(), 0.5 * std::log(4.0 / 3), 1e-12);
  EXPECT_NEAR(agreement.loss().value(), std::log(4.0), 1e-12);
}

TEST(AgreementTest, CountsRowsWithTheSameBestToken) {
  Agreement agreement;
  agreement.add(logs({0.6, 0.4}), logs({0.7, 0.3}), 0);
  agreement.add(logs({0.6, 0.4}), logs({0.3, 0.7}), 0);
  EXPECT_DOUBLE_EQ(agreement.sameBest().value(), 0.5);
}

TEST(AgreementTest, IgnoresWhatTheReferenceRulesOut) {
  Agreement agreement;
  agreement.add({0.0, -INFINITY}, logs({0.5, 0.5}), 0);
  EXPECT_NEAR(agreement.divergence().value(), std::log(2.0), 1e-12);
}

TEST(AgreementTest, FindsQuantilesOfTheDivergence) {
  Agreement agreement;
  for (int i = 1; i <= 100; ++i) {
    double q = std::exp(-i);
    agreement.add({0.0, -INFINITY}, {std::log(q), std::log1p(-q)}, 0);
  }
  EXPECT_NEAR(agreement.divergenceQuantile(0.99), 100, 1e-4);
  EXPECT_NEAR(agreement.divergenceQuantile(0.5), 51, 1e-4);
  EXPECT_NEAR(agreement.greatestDivergence(), 100, 1e-9);
}

TEST(MeanTest, HasTheStandardErrorOfIndependentValues) {
  Mean mean;
  for (double value : {1.0, 2.0, 3.0, 4.0})
    mean.add(value);
  EXPECT_DOUBLE_EQ(mean.value(), 2.5);
  // Sample deviation sqrt(5/3), over sqrt(4).
  EXPECT_NEAR(mean.standardError(), std::sqrt(5.0 / 3) / 2, 1e-12);
}

std::string plot(const std::vector<QualityPoint> &points) {
  std::string svg;
  llvm::raw_string_ostream out(svg);
  writeQualityPlot("a <b>", points, out);
  return svg;
}

TEST(QualityPlotTest, EscapesNamesAndDrawsAPointAModel) {
  std::string svg = plot({{"x & y", 100, 1e-3}, {"z", 50, 1e-2}});
  EXPECT_NE(svg.find("x &amp; y"), std::string::npos);
  EXPECT_NE(svg.find("a &lt;b&gt;"), std::string::npos);
  size_t points = 0;
  for (size_t at = svg.find("<circle"); at != std::string::npos; at = svg.find("<circle", at + 1))
    ++points;
  EXPECT_EQ(points, 2u);
}

TEST(QualityPlotTest, StandsPointsThatHaveNoLogarithm) {
  std::string svg = plot({{"same", 100, 0}, {"broken", 100, INFINITY}});
  EXPECT_EQ(svg.find("<circle"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

} // namespace
} // namespace izhc::tool
