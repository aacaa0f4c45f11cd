// What `izh-rt bench` prints: lines as they are measured, one JSON object, a
// Markdown table or a plot.

#pragma once

#include "tools/izh-rt/Bench.h"

#include <string>

namespace izh::rt {

void printMachine(const std::vector<MachineLimits> &machine);
void printRow(const BenchRow &row, const BenchOptions &options);
void printSecond(size_t second, double rate);
void printSustained(const Sustained &sustained);

std::string benchJson(const BenchResult &result, const BenchOptions &options,
                      const izh_model_info &info);
std::string benchMarkdown(const BenchResult &result, const BenchOptions &options,
                          const izh_model_info &info);
// Generated tokens a second over the length of the context, beside what the
// machine's limits allow.
std::string benchSvg(const BenchResult &result, const izh_model_info &info);

} // namespace izh::rt
