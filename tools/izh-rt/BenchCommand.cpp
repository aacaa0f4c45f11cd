// `izh-rt bench`: prompt and generation speed beside what the machine allows.

#include "tools/izh-rt/BenchReport.h"
#include "tools/izh-rt/Commands.h"
#include "tools/izh-rt/Json.h"
#include "tools/izh-rt/LimitMeter.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sys/stat.h>

namespace izh::rt {
namespace {

constexpr uint64_t kMostTokens = 1u << 24;

// One round a line of standard input, so that another engine can have its turn
// between them. Every line is answered with speeds and the machine's limits of
// that moment.
int serve(const izh_model *model, const izh_model_info &info, const BenchOptions &options,
          uint64_t threads, uint64_t depth, double loadMs) {
  Bench bench(options, info);
  if (!bench.start(model, threads, depth) || !bench.feed(16))
    return kFailed;
  ModelWork work = modelWork(model);
  uint64_t bytes = work.weightBytesPerToken + cacheBytesRead(info, depth + options.generate / 2);
  printf("%s\n", JsonObject()
                     .add("ready", "true")
                     .number("load_ms", loadMs)
                     .text("variant", info.variant)
                     .count("bytes_per_token", bytes)
                     .count("operations_per_token", work.operationsPerToken)
                     .str()
                     .c_str());
  fflush(stdout);
  LimitMeter meter(model, bench.threads());
  char line[256];
  while (fgets(line, sizeof(line), stdin)) {
    BenchRound round;
    if (!bench.round(depth, options.prompt != 0, &round))
      return kFailed;
    meter.measure();
    MachineLimits limits = meter.limits();
    printf("%s\n", JsonObject()
                       .number("pp", round.prompt)
                       .number("tg", round.generation)
                       .number("read_gbps", limits.readGbps)
                       .number("int8_gops", limits.int8Gops)
                       .str()
                       .c_str());
    if (fflush(stdout) != 0)
      return cannotPrint();
  }
  return kDone;
}

// "1,2" -> {1, 2}; an empty list means `otherwise`.
bool parseList(const std::string &list, uint64_t low, uint64_t high, uint64_t otherwise,
               std::vector<uint64_t> *numbers) {
  if (list.empty())
    numbers->push_back(otherwise);
  for (size_t begin = 0; begin < list.size();) {
    size_t end = std::min(list.find(',', begin), list.size());
    uint64_t count;
    if (!parseInteger(list.substr(begin, end - begin), low, high, &count))
      return false;
    numbers->push_back(count);
    begin = end + 1;
  }
  return list.empty() || list.back() != ',';
}

void declare(Arguments &arguments, BenchOptions &options) {
  declareModel(arguments, options.model);
  arguments.integer("-p,--prompt", "N", &options.prompt, 0, kMostTokens,
                    "tokens of a prompt (512)");
  arguments.integer("-n,--tokens", "N", &options.generate, 0, kMostTokens,
                    "tokens to generate one by one (128)");
  arguments.integer("-r,--rounds", "N", &options.rounds, 1, 10000, "rounds (5)");
  arguments.integer("-d,--depth", "N", &options.depth, 0, kMostTokens,
                    "tokens in the cache before those that are generated (0)");
  arguments.integer("--sequences", "N", &options.sequences, 1, 1024,
                    "sequences whose tokens are generated together (1)");
  arguments.text("--contexts", "LIST", &options.contexts,
                 "several depths, one row each, for example 0,512,2048");
  arguments.text("--threads,-t", "LIST", &options.threads,
                 "numbers of threads, one row each (one a usable physical core)");
  arguments.integer("--ctx,-c", "N", &options.model.contextTokens, 1, 1u << 30,
                    "tokens of the cache (what the rounds need)");
  arguments.integer("--sustain", "SECONDS", &options.sustain, 2, 100'000,
                    "then generates for so long: the rate each second, first minute and last");
  arguments.flag("--json", &options.json, "prints one JSON object");
  arguments.flag("--markdown", &options.markdown, "prints a Markdown table");
  arguments.text("--svg", "FILE", &options.svg,
                 "also draws generated tokens a second over the context's length");
  arguments.flag("--serve", &options.serve, "runs one round a line of standard input");
}

std::string misfit(const BenchOptions &options) {
  if (!options.prompt && !options.generate)
    return "there is nothing to measure with -p 0 and -n 0";
  if (options.json + options.markdown + options.serve > 1)
    return "--json, --markdown and --serve exclude each other";
  if (options.depth && !options.contexts.empty())
    return "--depth and --contexts exclude each other";
  if (!options.generate && (options.sustain || !options.svg.empty()))
    return "--sustain and --svg are about generated tokens, but -n is 0";
  struct stat model, image;
  if (!options.svg.empty() && stat(options.model.file.c_str(), &model) == 0 &&
      stat(options.svg.c_str(), &image) == 0 && model.st_dev == image.st_dev &&
      model.st_ino == image.st_ino)
    return "--svg " + options.svg + " is the same file as the model";
  return "";
}

int writeFile(const std::string &path, const std::string &text) {
  FILE *file = fopen(path.c_str(), "wb");
  bool written = file && fwrite(text.data(), 1, text.size(), file) == text.size();
  int reason = errno;
  if (file && fclose(file) != 0 && written) {
    written = false;
    reason = errno;
  }
  return written ? kDone : failed("cannot write '" + path + "': " + strerror(reason));
}

bool sustain(const izh_model *model, const izh_model_info &info, const BenchOptions &options,
             uint64_t threads, uint64_t depth, bool quiet, BenchResult *result) {
  Bench bench(options, info);
  if (!bench.start(model, threads, depth))
    return false;
  Sustained sustained;
  sustained.threads = bench.threads();
  if (!bench.sustain(depth, double(options.sustain), &sustained.rates,
                     quiet ? nullptr : printSecond))
    return false;
  compareEnds(&sustained);
  if (!quiet)
    printSustained(sustained);
  result->sustained.push_back(std::move(sustained));
  return true;
}

int measure(const izh_model *model, const izh_model_info &info, const BenchOptions &options,
            const std::vector<uint64_t> &threads, const std::vector<uint64_t> &depths,
            double loadMs) {
  bool quiet = options.json || options.markdown;
  BenchResult result;
  for (uint64_t one : threads) {
    if (!measureRows(model, options, one, depths, loadMs, &result.rows, quiet ? nullptr : printRow))
      return kFailed;
    if (options.sustain && !sustain(model, info, options, one, depths[0], quiet, &result))
      return kFailed;
  }
  uint32_t most = 1;
  for (const BenchRow &row : result.rows)
    most = std::max(most, row.threads);
  result.machine = limitsByThreads(model, most);
  if (options.json)
    printf("%s\n", benchJson(result, options, info).c_str());
  else if (options.markdown)
    printf("%s", benchMarkdown(result, options, info).c_str());
  else
    printMachine(result.machine);
  return options.svg.empty() ? kDone : writeFile(options.svg, benchSvg(result, info));
}

} // namespace

int benchCommand(int count, char **words) {
  BenchOptions options;
  Arguments arguments("izh-rt bench", "Measures speed against the machine's limits.");
  declare(arguments, options);
  int status;
  if (!arguments.parse(count, words, &status))
    return status;
  std::vector<uint64_t> threads, depths;
  if (!parseList(options.threads, 1, 1024, 0, &threads))
    return arguments.misuse("--threads takes numbers from 1 to 1024 separated by commas, not '" +
                            options.threads + "'");
  if (!parseList(options.contexts, 0, kMostTokens, options.depth, &depths))
    return arguments.misuse("--contexts takes numbers of tokens separated by commas, not '" +
                            options.contexts + "'");
  if (std::string sentence = misfit(options); !sentence.empty())
    return arguments.misuse(sentence);

  double begin = now();
  ModelPtr model = openModel(options.model);
  if (!model)
    return kFailed;
  double loadMs = (now() - begin) * 1e3;
  izh_model_info info;
  izh_model_get_info(model.get(), &info);
  if (options.serve)
    return serve(model.get(), info, options, threads[0], depths[0], loadMs);
  return measure(model.get(), info, options, threads, depths, loadMs);
}

} // namespace izh::rt
