// A line plot as a self-contained SVG image.

#pragma once

#include <string>
#include <utility>
#include <vector>

namespace izh::rt {

struct PlotSeries {
  std::string name;
  std::vector<std::pair<double, double>> points; // by ascending x; only finite ones are drawn
  bool dashed = false;
};

struct Plot {
  std::string title, xLabel, yLabel;
  std::vector<PlotSeries> series;
};

// Both axes begin at 0; negative numbers are drawn there.
std::string plotSvg(const Plot &plot);

// `text` with &, <, > and quotes as entities, without what XML forbids.
std::string escapeXml(const std::string &text);

// The ends of about five equal, round steps from 0 that reach `most`: 1, 2 or
// 5 times a power of ten.
std::vector<double> axisTicks(double most);

} // namespace izh::rt
