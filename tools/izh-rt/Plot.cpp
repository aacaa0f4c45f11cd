// Fixed size, a frame, ticks, lines with dots, a legend below the title.

#include "tools/izh-rt/Plot.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>

namespace izh::rt {
namespace {

constexpr double kWidth = 760, kHeight = 440;
constexpr double kLeft = 74, kRight = 24, kTop = 74, kBottom = 56;
constexpr const char *kColors[] = {"#1f5fb4", "#c2410c", "#15803d",
                                   "#7c3aed", "#a16207", "#be185d"};

std::string format(const char *pattern, ...) __attribute__((format(printf, 1, 2)));
std::string format(const char *pattern, ...) {
  char text[512];
  va_list values;
  va_start(values, pattern);
  vsnprintf(text, sizeof(text), pattern, values);
  va_end(values);
  return text;
}

// From the plot's numbers to places in the image.
struct Frame {
  double mostX, mostY;

  double x(double value) const {
    return kLeft + std::clamp(value / mostX, 0.0, 1.0) * (kWidth - kLeft - kRight);
  }
  double y(double value) const {
    return kHeight - kBottom - std::clamp(value / mostY, 0.0, 1.0) * (kHeight - kTop - kBottom);
  }
};

double greatest(const Plot &plot, bool ofX) {
  double most = 0;
  for (const PlotSeries &series : plot.series)
    for (auto &[x, y] : series.points)
      if (std::isfinite(x) && std::isfinite(y))
        most = std::max(most, ofX ? x : y);
  return most;
}

// `text` is inserted as it is.
std::string label(double x, double y, const char *anchor, const std::string &text) {
  return format("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor) + text +
         "</text>\n";
}

std::string axes(const Plot &plot, const Frame &frame, const std::vector<double> &xTicks,
                 const std::vector<double> &yTicks) {
  std::string out;
  for (double tick : yTicks) {
    out += format("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>\n",
                  kLeft, frame.y(tick), kWidth - kRight, frame.y(tick));
    out += label(kLeft - 8, frame.y(tick) + 4, "end", format("%g", tick));
  }
  for (double tick : xTicks) {
    out += format("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#444\"/>\n",
                  frame.x(tick), kHeight - kBottom, frame.x(tick), kHeight - kBottom + 5);
    out += label(frame.x(tick), kHeight - kBottom + 20, "middle", format("%g", tick));
  }
  out += format("<path d=\"M%.1f %.1fV%.1fH%.1f\" fill=\"none\" stroke=\"#444\"/>\n", kLeft, kTop,
                kHeight - kBottom, kWidth - kRight);
  out += label((kLeft + kWidth - kRight) / 2, kHeight - 14, "middle", escapeXml(plot.xLabel));
  out += format("<text transform=\"translate(18 %.1f) rotate(-90)\" text-anchor=\"middle\">",
                (kTop + kHeight - kBottom) / 2) +
         escapeXml(plot.yLabel) + "</text>\n";
  return out;
}

std::string curve(const PlotSeries &series, const Frame &frame, const char *color) {
  std::string path, dots;
  for (auto &[x, y] : series.points) {
    if (!std::isfinite(x) || !std::isfinite(y))
      continue;
    path += format("%c%.1f %.1f", path.empty() ? 'M' : 'L', frame.x(x), frame.y(y));
    if (!series.dashed)
      dots += format("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n", frame.x(x),
                     frame.y(y), color);
  }
  if (path.empty())
    return "";
  return "<path d=\"" + path + "\" fill=\"none\" stroke-width=\"2\" stroke=\"" + color + "\"" +
         (series.dashed ? " stroke-dasharray=\"6 4\"" : "") + "/>\n" + dots;
}

} // namespace

std::string escapeXml(const std::string &text) {
  std::string out;
  for (char c : text) {
    switch (c) {
    case '&':
      out += "&amp;";
      break;
    case '<':
      out += "&lt;";
      break;
    case '>':
      out += "&gt;";
      break;
    case '"':
      out += "&quot;";
      break;
    case '\'':
      out += "&#39;";
      break;
    default:
      // Names come from files that nobody vouches for.
      out += static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e ? '?' : c;
    }
  }
  return out;
}

std::vector<double> axisTicks(double most) {
  if (!std::isfinite(most) || most <= 0)
    most = 1;
  double step = std::pow(10, std::floor(std::log10(most / 5)));
  for (double factor : {1.0, 2.0, 5.0, 10.0}) {
    if (most / (step * factor) > 6)
      continue;
    step *= factor;
    break;
  }
  std::vector<double> ticks = {0};
  // The slack forgives a sum that rounding left below the end.
  for (int i = 1; ticks.back() < most * (1 - 1e-9); ++i)
    ticks.push_back(step * i);
  return ticks;
}

std::string plotSvg(const Plot &plot) {
  std::vector<double> xTicks = axisTicks(greatest(plot, true));
  std::vector<double> yTicks = axisTicks(greatest(plot, false));
  Frame frame = {xTicks.back(), yTicks.back()};
  std::string out = format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" "
                           "font-family=\"sans-serif\" font-size=\"13\" fill=\"#222\">\n"
                           "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
                           kWidth, kHeight);
  out += "<text x=\"24\" y=\"28\" font-size=\"16\">" + escapeXml(plot.title) + "</text>\n";
  out += axes(plot, frame, xTicks, yTicks);
  double place = kLeft;
  for (size_t i = 0; i < plot.series.size(); ++i) {
    const PlotSeries &series = plot.series[i];
    const char *color = kColors[i / 2 % std::size(kColors)];
    out += curve(series, frame, color);
    out += format("<path d=\"M%.1f 50h26\" stroke=\"%s\" stroke-width=\"2\"%s/>\n", place, color,
                  series.dashed ? " stroke-dasharray=\"6 4\"" : "");
    out += label(place + 32, 54, "start", escapeXml(series.name));
    place += 52 + 7.2 * double(series.name.size());
  }
  return out + "</svg>\n";
}

} // namespace izh::rt
