// `izh-rt bench`: prompt and generation speed beside what the machine allows.

#include "tools/izh-rt/Commands.h"
#include "tools/izh-rt/Json.h"
#include "tools/izh-rt/Limits.h"
#include "tools/izh-rt/Model.h"

#include <algorithm>
#include <cstdio>

namespace izh::rt {
namespace {

struct BenchOptions {
  ModelOptions model;
  std::string threads;
  uint64_t prompt = 512, generate = 128, rounds = 5, depth = 0;
  bool json = false, serve = false;
};

// Speeds in tokens a second; 0 where nothing was asked for.
struct Round {
  double prompt = 0, generation = 0;
};

// One context with one sequence, which each measurement starts anew.
class Bench {
public:
  Bench(const BenchOptions &options, const izh_model_info &info)
      : options(options), logits(info.vocabulary), vocabulary(info.vocabulary) {}

  bool start(const izh_model *model, uint64_t threads) {
    uint64_t room = std::max({options.prompt, options.depth + options.generate, uint64_t(17)});
    context = createContext(model, threads, std::max(room, options.model.contextTokens), 1);
    izh_error error = {};
    if (context && izh_sequence_create(context.get(), &sequence, &error) != IZH_OK) {
      failed(error);
      return false;
    }
    return context != nullptr;
  }

  uint32_t threads() const { return izh_context_threads(context.get()); }

  // Appends `count` random tokens in one call.
  bool feed(uint64_t count) {
    if (!count)
      return true;
    tokens.resize(count);
    for (int32_t &token : tokens) {
      // Knuth's generator: the tokens are of no interest, but the same each time.
      random = random * 6364136223846793005u + 1442695040888963407u;
      token = int32_t((random >> 33) % vocabulary);
    }
    izh_input input = {sequence, tokens.data(), uint32_t(count), 1};
    return check([&](izh_error *error) {
      return izh_context_run(context.get(), &input, 1, logits.data(), error);
    });
  }

  bool clear() {
    return check([&](izh_error *error) { return izh_sequence_truncate(sequence, 0, error); });
  }

  bool round(Round *result) {
    if (options.prompt) {
      if (!clear())
        return false;
      double begin = now();
      if (!feed(options.prompt))
        return false;
      result->prompt = double(options.prompt) / (now() - begin);
    }
    if (options.generate) {
      if (!clear() || !feed(options.depth))
        return false;
      double begin = now();
      for (uint64_t i = 0; i < options.generate; ++i)
        if (!feed(1))
          return false;
      result->generation = double(options.generate) / (now() - begin);
    }
    return true;
  }

private:
  template <typename Function> bool check(Function function) {
    izh_error error = {};
    if (function(&error) == IZH_OK)
      return true;
    failed(error);
    return false;
  }

  const BenchOptions &options;
  ContextPtr context;
  izh_sequence *sequence = nullptr;
  std::vector<float> logits;
  std::vector<int32_t> tokens;
  uint64_t random = 1;
  uint32_t vocabulary;
};

struct Row {
  uint32_t threads = 0;
  double loadMs = 0, ttftMs = 0;
  std::vector<double> prompt, generation;
  MachineLimits limits;
  uint64_t bytesPerToken = 0;
  double promptShare = 0, generationShare = 0;
};

// The share of the machine's limits that the medians reach.
void rate(Row &row, const ModelWork &work, const izh_model_info &info,
          const BenchOptions &options) {
  row.bytesPerToken = work.weightBytesPerToken +
                      info.cache_bytes_per_token * (options.depth + options.generate / 2);
  if (row.limits.readGbps > 0 && options.generate)
    row.generationShare =
        median(row.generation) * double(row.bytesPerToken) / 1e9 / row.limits.readGbps;
  if (row.limits.int8Gops > 0 && options.prompt) {
    double operations =
        double(work.operationsPerToken) + double(work.operationsPerOutput) / double(options.prompt);
    row.promptShare = median(row.prompt) * operations / 1e9 / row.limits.int8Gops;
  }
}

bool measureRow(const izh_model *model, const izh_model_info &info, const BenchOptions &options,
                uint64_t threads, double loadMs, Row *row) {
  Bench bench(options, info);
  double begin = now();
  if (!bench.start(model, threads) || !bench.feed(std::max<uint64_t>(options.prompt, 16)))
    return false;
  row->threads = bench.threads();
  row->loadMs = loadMs;
  // Cold: threads, buffers and pages are touched for the first time.
  row->ttftMs = loadMs + (now() - begin) * 1e3;
  for (uint64_t i = 0; i < options.rounds; ++i) {
    Round round;
    if (!bench.round(&round))
      return false;
    row->prompt.push_back(round.prompt);
    row->generation.push_back(round.generation);
  }
  row->limits = measureLimits(model, row->threads);
  rate(*row, modelWork(model), info, options);
  return true;
}

std::string rowJson(const Row &row, const BenchOptions &options) {
  return JsonObject()
      .count("threads", row.threads)
      .count("prompt", options.prompt)
      .count("generate", options.generate)
      .number("pp_tps", median(row.prompt))
      .number("pp_dev", deviation(row.prompt))
      .number("tg_tps", median(row.generation))
      .number("tg_dev", deviation(row.generation))
      .number("ttft_ms", row.ttftMs)
      .number("load_ms", row.loadMs)
      .count("bytes_per_token", row.bytesPerToken)
      .number("read_gbps", row.limits.readGbps)
      .number("int8_gops", row.limits.int8Gops)
      .number("pp_share", row.promptShare)
      .number("tg_share", row.generationShare)
      .str();
}

std::string machineJson(const izh_model_info &info, const std::vector<Row> &rows) {
  MachineLimits best;
  for (const Row &row : rows) {
    best.readGbps = std::max(best.readGbps, row.limits.readGbps);
    best.int8Gops = std::max(best.int8Gops, row.limits.int8Gops);
    best.how = row.limits.how;
  }
  return JsonObject()
      .text("cpu", processorName())
      .text("variant", info.variant)
      .number("read_gbps", best.readGbps)
      .number("int8_gops", best.int8Gops)
      .text("int8_how", best.how)
      .str();
}

void printRow(const Row &row, const BenchOptions &options) {
  printf("%u threads: load %.1f ms, first token after %.0f ms\n", row.threads, row.loadMs,
         row.ttftMs);
  if (options.prompt)
    printf("  prompt     %4llu tokens  %9.2f +- %.2f tokens/s  %5.1f %% of %.0f GOP/s (%s)\n",
           static_cast<unsigned long long>(options.prompt), median(row.prompt),
           deviation(row.prompt), 100 * row.promptShare, row.limits.int8Gops,
           row.limits.how.c_str());
  if (options.generate)
    printf("  generation %4llu tokens  %9.2f +- %.2f tokens/s  %5.1f %% of %.1f GB/s, "
           "%.2f MB a token\n",
           static_cast<unsigned long long>(options.generate), median(row.generation),
           deviation(row.generation), 100 * row.generationShare, row.limits.readGbps,
           double(row.bytesPerToken) / 1e6);
  fflush(stdout);
}

// One round a line of standard input, so that another engine can have its turn
// between them.
int serve(const izh_model *model, const izh_model_info &info, const BenchOptions &options,
          uint64_t threads, double loadMs) {
  Bench bench(options, info);
  if (!bench.start(model, threads) || !bench.feed(16))
    return kFailed;
  printf("%s\n", JsonObject().add("ready", "true").number("load_ms", loadMs).str().c_str());
  fflush(stdout);
  char line[256];
  while (fgets(line, sizeof(line), stdin)) {
    Round round;
    if (!bench.round(&round))
      return kFailed;
    printf("%s\n",
           JsonObject().number("pp", round.prompt).number("tg", round.generation).str().c_str());
    if (fflush(stdout) != 0)
      return cannotPrint();
  }
  return kDone;
}

// "1,2" -> {1, 2}; an empty list means the runtime's choice.
bool parseThreads(const std::string &list, std::vector<uint64_t> *threads) {
  if (list.empty())
    threads->push_back(0);
  for (size_t begin = 0; begin < list.size();) {
    size_t end = std::min(list.find(',', begin), list.size());
    uint64_t count;
    if (!parseInteger(list.substr(begin, end - begin), 1, 1024, &count))
      return false;
    threads->push_back(count);
    begin = end + 1;
  }
  return true;
}

void declare(Arguments &arguments, BenchOptions &options) {
  declareModel(arguments, options.model);
  arguments.integer("-p,--prompt", "N", &options.prompt, 0, 1u << 24, "tokens of a prompt (512)");
  arguments.integer("-n,--tokens", "N", &options.generate, 0, 1u << 24,
                    "tokens to generate one by one (128)");
  arguments.integer("-r,--rounds", "N", &options.rounds, 1, 10000, "rounds (5)");
  arguments.integer("-d,--depth", "N", &options.depth, 0, 1u << 24,
                    "tokens in the cache before those that are generated (0)");
  arguments.text("--threads,-t", "LIST", &options.threads,
                 "numbers of threads, one row each (one a usable physical core)");
  arguments.integer("--ctx,-c", "N", &options.model.contextTokens, 1, 1u << 30,
                    "tokens of the cache (what the rounds need)");
  arguments.flag("--json", &options.json, "prints one JSON object");
  arguments.flag("--serve", &options.serve, "runs one round a line of standard input");
}

} // namespace

int benchCommand(int count, char **words) {
  BenchOptions options;
  Arguments arguments("izh-rt bench", "Measures speed against the machine's limits.");
  declare(arguments, options);
  int status;
  if (!arguments.parse(count, words, &status))
    return status;
  std::vector<uint64_t> threads;
  if (!parseThreads(options.threads, &threads))
    return arguments.misuse("--threads takes numbers from 1 to 1024 separated by commas, not '" +
                            options.threads + "'");
  if (!options.prompt && !options.generate)
    return arguments.misuse("there is nothing to measure with -p 0 and -n 0");

  double begin = now();
  ModelPtr model = openModel(options.model);
  if (!model)
    return kFailed;
  double loadMs = (now() - begin) * 1e3;
  izh_model_info info;
  izh_model_get_info(model.get(), &info);
  if (options.serve)
    return serve(model.get(), info, options, threads[0], loadMs);
  std::vector<Row> rows;
  std::vector<std::string> items;
  for (uint64_t one : threads) {
    Row row;
    if (!measureRow(model.get(), info, options, one, loadMs, &row))
      return kFailed;
    if (!options.json)
      printRow(row, options);
    items.push_back(rowJson(row, options));
    rows.push_back(std::move(row));
  }
  if (options.json)
    printf("%s\n", JsonObject()
                       .add("machine", machineJson(info, rows))
                       .add("rows", jsonList(items))
                       .str()
                       .c_str());
  return kDone;
}

} // namespace izh::rt
