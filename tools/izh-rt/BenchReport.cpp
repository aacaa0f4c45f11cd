// One function a form.

#include "tools/izh-rt/BenchReport.h"

#include "tools/izh-rt/Json.h"
#include "tools/izh-rt/LimitMeter.h"
#include "tools/izh-rt/Plot.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace izh::rt {
namespace {

using Number = unsigned long long;

std::string threadsText(uint32_t threads) {
  return std::to_string(threads) + (threads == 1 ? " thread" : " threads");
}

// Not measured is "", not a number.
std::string cell(double value, const char *format) {
  char text[64];
  if (!std::isfinite(value) || value <= 0)
    return "";
  snprintf(text, sizeof(text), format, value);
  return text;
}

std::string rowJson(const BenchRow &row, const BenchOptions &options) {
  return JsonObject()
      .count("threads", row.threads)
      .count("context", row.depth)
      .count("prompt", options.prompt)
      .count("generate", options.generate)
      .count("sequences", options.sequences)
      .number("pp_tps", median(row.prompt))
      .number("pp_dev", deviation(row.prompt))
      .number("pp_predicted", row.promptPredicted)
      .number("tg_tps", median(row.generation))
      .number("tg_dev", deviation(row.generation))
      .number("tg_predicted", row.generationPredicted)
      .number("ttft_ms", row.ttftMs)
      .number("load_ms", row.loadMs)
      .count("bytes_per_token", row.bytesPerToken)
      .number("read_gbps", row.limits.readGbps)
      .number("int8_gops", row.limits.int8Gops)
      .number("phase_us", row.limits.phaseUs)
      .number("pp_share", row.promptShare)
      .number("tg_share", row.generationShare)
      .str();
}

std::string sustainedJson(const Sustained &sustained) {
  std::vector<std::string> rates;
  for (double rate : sustained.rates)
    rates.push_back(jsonNumber(rate));
  return JsonObject()
      .count("threads", sustained.threads)
      .number("first_tps", sustained.first)
      .number("last_tps", sustained.last)
      .number("ratio", sustained.last / sustained.first)
      .add("rates", jsonList(rates))
      .str();
}

std::string machineJson(const BenchResult &result, const izh_model_info &info) {
  MachineLimits best;
  std::vector<std::string> list;
  for (const MachineLimits &limits : result.machine) {
    best.readGbps = std::max(best.readGbps, limits.readGbps);
    best.int8Gops = std::max(best.int8Gops, limits.int8Gops);
    best.how = limits.how;
    list.push_back(JsonObject()
                       .count("threads", limits.threads)
                       .number("read_gbps", limits.readGbps)
                       .number("int8_gops", limits.int8Gops)
                       .number("phase_us", limits.phaseUs)
                       .str());
  }
  return JsonObject()
      .text("cpu", processorName())
      .text("variant", info.variant)
      .number("read_gbps", best.readGbps)
      .number("int8_gops", best.int8Gops)
      .text("int8_how", best.how)
      .add("by_threads", jsonList(list))
      .str();
}

} // namespace

void printMachine(const std::vector<MachineLimits> &machine) {
  printf("%s\n", processorName().c_str());
  for (const MachineLimits &limits : machine) {
    if (limits.int8Gops > 0)
      printf("  after the rounds, %s: reads the mapped weights at %.1f GB/s, int8 %.0f GOP/s (%s), "
             "%.2f us a phase\n",
             threadsText(limits.threads).c_str(), limits.readGbps, limits.int8Gops,
             limits.how.c_str(), limits.phaseUs);
    else
      printf("  %s %.1f GB/s\n", limits.how.c_str(), limits.readGbps);
  }
  fflush(stdout);
}

void printRow(const BenchRow &row, const BenchOptions &options) {
  if (!row.prompt.empty() || !row.depth)
    printf("%s: load %.1f ms, first token after %.0f ms\n", threadsText(row.threads).c_str(),
           row.loadMs, row.ttftMs);
  if (!row.prompt.empty())
    printf("  prompt     %5llu tokens               %9.2f +- %.2f tokens/s", Number(options.prompt),
           median(row.prompt), deviation(row.prompt));
  if (!row.prompt.empty() && row.limits.int8Gops > 0)
    printf(", predicted %.1f  %5.1f %% of %.0f GOP/s between the rounds", row.promptPredicted,
           100 * row.promptShare, row.limits.int8Gops);
  if (!row.prompt.empty())
    printf("\n");
  if (!row.generation.empty())
    printf("  generation %5llu tokens after %6llu  %9.2f +- %.2f tokens/s, predicted %.1f  "
           "%5.1f %% of %.1f GB/s between the rounds, %.2f MB a token\n",
           Number(options.generate), Number(row.depth), median(row.generation),
           deviation(row.generation), row.generationPredicted, 100 * row.generationShare,
           row.limits.readGbps, double(row.bytesPerToken) / 1e6);
  fflush(stdout);
}

void printSecond(size_t second, double rate) {
  printf("  second %4zu  %9.2f tokens/s\n", second, rate);
  fflush(stdout);
}

void printSustained(const Sustained &sustained) {
  size_t part = std::min<size_t>(60, sustained.rates.size() / 2);
  printf("  %s for %zu s: first %zu s %.2f, last %zu s %.2f tokens/s (%.1f %%)\n",
         threadsText(sustained.threads).c_str(), sustained.rates.size(), part, sustained.first,
         part, sustained.last, 100 * sustained.last / sustained.first);
  fflush(stdout);
}

std::string benchJson(const BenchResult &result, const BenchOptions &options,
                      const izh_model_info &info) {
  std::vector<std::string> rows, sustained;
  for (const BenchRow &row : result.rows)
    rows.push_back(rowJson(row, options));
  for (const Sustained &one : result.sustained)
    sustained.push_back(sustainedJson(one));
  JsonObject object;
  object.add("machine", machineJson(result, info)).add("rows", jsonList(rows));
  if (!sustained.empty())
    object.add("sustained", jsonList(sustained));
  return object.str();
}

std::string benchMarkdown(const BenchResult &result, const BenchOptions &options,
                          const izh_model_info &info) {
  std::string prompt = std::to_string(options.prompt), out;
  out += processorName() + ", variant " + info.variant + ", medians of " +
         std::to_string(options.rounds) + " rounds\n\n";
  out +=
      "| threads | context | prompt of " + prompt +
      ", tokens/s | predicted | of int8 peak | generated, tokens/s | predicted | of read speed | "
      "GB/s |\n| --: | --: | --: | --: | --: | --: | --: | --: | --: |\n";
  for (const BenchRow &row : result.rows) {
    out += "| " + std::to_string(row.threads) + " | " + std::to_string(row.depth);
    out += " | " + cell(median(row.prompt), "%.1f") + " | " + cell(row.promptPredicted, "%.1f");
    out += " | " + cell(100 * row.promptShare, "%.0f %%");
    out += " | " + cell(median(row.generation), "%.1f");
    out += " | " + cell(row.generationPredicted, "%.1f");
    out += " | " + cell(100 * row.generationShare, "%.0f %%");
    out += " | " + cell(row.limits.readGbps, "%.1f") + " |\n";
  }
  for (const Sustained &one : result.sustained) {
    out += "\nSustained with " + threadsText(one.threads) + ": " + cell(one.first, "%.1f") +
           " tokens/s at first, " + cell(one.last, "%.1f") + " at last, in " +
           std::to_string(one.rates.size()) + " s\n";
  }
  return out;
}

std::string benchSvg(const BenchResult &result, const izh_model_info &info) {
  Plot plot;
  plot.title = std::string(info.name) + ", " + info.variant + ", " + processorName();
  plot.xLabel = "tokens of context";
  plot.yLabel = "generated tokens a second";
  for (const BenchRow &row : result.rows) {
    std::string name = threadsText(row.threads);
    if (plot.series.empty() || plot.series[plot.series.size() - 2].name != name) {
      plot.series.push_back({name, {}, false});
      plot.series.push_back({name + ", predicted", {}, true});
    }
    PlotSeries *measured = &plot.series[plot.series.size() - 2];
    measured->points.push_back({double(row.depth), median(row.generation)});
    plot.series.back().points.push_back({double(row.depth), row.generationPredicted});
  }
  return plotSvg(plot);
}

} // namespace izh::rt
