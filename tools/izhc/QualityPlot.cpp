// Plain SVG elements, no scripts and no fonts of its own.

#include "tools/izhc/QualityPlot.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>
#include <cmath>

namespace izhc::tool {
namespace {

constexpr double kWidth = 720, kHeight = 440;
constexpr double kLeft = 80, kRight = 150, kTop = 40, kBottom = 56;

struct Axis {
  double lo, hi;   // of the values
  double from, to; // pixels of lo and hi
  double at(double value) const { return from + (value - lo) / (hi - lo) * (to - from); }
};

std::string escaped(llvm::StringRef text) {
  std::string out;
  llvm::raw_string_ostream stream(out);
  llvm::printHTMLEscaped(text, stream);
  return out;
}

// A step of 1, 2 or 5 times a power of ten that cuts `span` into at most `most`.
double niceStep(double span, int most) {
  double step = std::pow(10, std::floor(std::log10(span / most)));
  for (double factor : {1.0, 2.0, 5.0, 10.0})
    if (span / (step * factor) <= most)
      return step * factor;
  return step * 10;
}

void drawText(llvm::raw_ostream &out, double x, double y, const char *anchor,
              llvm::StringRef text) {
  out << llvm::formatv("<text x='{0:f1}' y='{1:f1}' text-anchor='{2}'>{3}</text>\n", x, y, anchor,
                       escaped(text));
}

void drawGrid(const Axis &sizes, const Axis &losses, llvm::raw_ostream &out) {
  double step = niceStep(sizes.hi - sizes.lo, 6);
  for (double value = std::ceil(sizes.lo / step) * step; value <= sizes.hi; value += step) {
    double x = sizes.at(value);
    out << llvm::formatv("<line x1='{0:f1}' y1='{1:f1}' x2='{0:f1}' y2='{2:f1}'/>\n", x,
                         losses.from, losses.to);
    drawText(out, x, losses.from + 18, "middle", llvm::formatv("{0:f0}", value).str());
  }
  for (double power = losses.lo; power <= losses.hi + 0.5; power += 1) {
    double y = losses.at(power);
    out << llvm::formatv("<line x1='{0:f1}' y1='{1:f1}' x2='{2:f1}' y2='{1:f1}'/>\n", sizes.from, y,
                         sizes.to);
    drawText(out, sizes.from - 8, y + 4, "end", llvm::formatv("1e{0:f0}", power).str());
  }
}

} // namespace

void writeQualityPlot(const std::string &reference, const std::vector<QualityPoint> &points,
                      llvm::raw_ostream &out) {
  std::vector<const QualityPoint *> shown;
  for (const QualityPoint &point : points)
    if (point.divergence > 0 && std::isfinite(point.divergence))
      shown.push_back(&point);
  double least = INFINITY, most = 0, low = INFINITY, high = -INFINITY;
  for (const QualityPoint *point : shown) {
    least = std::min(least, point->megabytes);
    most = std::max(most, point->megabytes);
    low = std::min(low, std::floor(std::log10(point->divergence)));
    high = std::max(high, std::ceil(std::log10(point->divergence)));
  }
  if (shown.empty())
    least = 0, most = 1, low = -4, high = 0;
  double margin = std::max((most - least) * 0.08, most * 0.02);
  Axis sizes = {std::max(0.0, least - margin), most + margin, kLeft, kWidth - kRight};
  Axis losses = {low, std::max(high, low + 1), kHeight - kBottom, kTop};

  out << llvm::formatv("<svg xmlns='http://www.w3.org/2000/svg' width='{0:f0}' height='{1:f0}' "
                       "viewBox='0 0 {0:f0} {1:f0}' font-family='sans-serif' font-size='12'>\n",
                       kWidth, kHeight);
  out << "<rect width='100%' height='100%' fill='white'/>\n"
         "<style>line{stroke:#ddd} text{fill:#333}</style>\n";
  drawGrid(sizes, losses, out);
  drawText(out, kLeft, 22, "start", "Mean KL divergence to " + reference + ", nats");
  drawText(out, (sizes.from + sizes.to) / 2, kHeight - 14, "middle", "weights, MB");
  for (const QualityPoint *point : shown) {
    double x = sizes.at(point->megabytes), y = losses.at(std::log10(point->divergence));
    out << llvm::formatv("<circle cx='{0:f1}' cy='{1:f1}' r='4' fill='#1f6fb2'/>\n", x, y);
    drawText(out, x + 8, y + 4, "start", point->name);
  }
  out << "</svg>\n";
}

} // namespace izhc::tool
