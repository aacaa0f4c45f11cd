// Rounds of prompts and generated tokens, with the machine's limits measured
// between them.

#include "tools/izh-rt/Bench.h"

#include "tools/izh-rt/LimitMeter.h"

#include <algorithm>
#include <numeric>

namespace izh::rt {
namespace {

template <typename Function> bool check(Function function) {
  izh_error error = {};
  if (function(&error) == IZH_OK)
    return true;
  failed(error);
  return false;
}

// What the medians reach of what the machine allows.
void rate(BenchRow &row, const izh_model *model, const BenchOptions &options) {
  ModelWork work = modelWork(model);
  izh_model_info info;
  izh_model_get_info(model, &info);
  // The weights are read once for all sequences.
  row.bytesPerToken = work.weightBytesPerToken / options.sequences +
                      cacheBytesRead(info, row.depth + options.generate / 2);
  if (!row.generation.empty()) {
    row.generationPredicted = predictGeneration(row.limits, work, row.bytesPerToken);
    if (row.limits.readGbps > 0)
      row.generationShare =
          median(row.generation) * double(row.bytesPerToken) / 1e9 / row.limits.readGbps;
  }
  if (!row.prompt.empty()) {
    row.promptPredicted = predictPrompt(row.limits, work, options.prompt);
    double operations =
        double(work.operationsPerToken) + double(work.operationsPerOutput) / double(options.prompt);
    if (row.limits.int8Gops > 0)
      row.promptShare = median(row.prompt) * operations / 1e9 / row.limits.int8Gops;
  }
}

} // namespace

bool Bench::start(const izh_model *model, uint64_t threads, uint64_t depth) {
  uint64_t room = std::max({options.prompt, depth + options.generate, uint64_t(17)});
  room = std::max(room * options.sequences, options.model.contextTokens);
  context = createContext(model, threads, room, uint32_t(options.sequences));
  sequences.assign(options.sequences, nullptr);
  best.resize(options.sequences);
  if (!context)
    return false;
  for (izh_sequence *&sequence : sequences)
    if (!check(
            [&](izh_error *error) { return izh_sequence_create(context.get(), &sequence, error); }))
      return false;
  return true;
}

bool Bench::feed(uint64_t count, size_t first, size_t many) {
  if (!count)
    return true;
  tokens.resize(count * many);
  for (int32_t &token : tokens) {
    // Knuth's generator: the tokens are of no interest, but the same each time.
    random = random * 6364136223846793005u + 1442695040888963407u;
    token = int32_t((random >> 33) % vocabulary);
  }
  std::vector<izh_input> inputs;
  for (size_t i = 0; i < many; ++i)
    inputs.push_back({sequences[first + i], tokens.data() + i * count, uint32_t(count), 1});
  return check([&](izh_error *error) {
    return izh_context_run_best(context.get(), inputs.data(), uint32_t(many), best.data(), error);
  });
}

bool Bench::resize(uint64_t count) {
  for (size_t i = 0; i < sequences.size(); ++i) {
    izh_sequence *sequence = sequences[i];
    uint64_t length = izh_sequence_length(sequence);
    // Not every model can forget a part of its context.
    if (length > count && izh_sequence_truncate(sequence, uint32_t(count), nullptr) != IZH_OK &&
        !check([&](izh_error *error) { return izh_sequence_truncate(sequence, 0, error); }))
      return false;
    if (!feed(count - izh_sequence_length(sequence), i, 1))
      return false;
  }
  return true;
}

bool Bench::round(uint64_t depth, bool prompt, BenchRound *result) {
  if (prompt) {
    if (!resize(0))
      return false;
    double begin = now();
    if (!feed(options.prompt))
      return false;
    result->prompt = double(options.prompt) / (now() - begin);
  }
  if (options.generate) {
    if (!resize(depth))
      return false;
    double begin = now();
    for (uint64_t i = 0; i < options.generate; ++i)
      if (!feed(1, 0, sequences.size()))
        return false;
    result->generation = double(options.generate * sequences.size()) / (now() - begin);
  }
  return true;
}

bool Bench::sustain(uint64_t depth, double seconds, std::vector<double> *rates,
                    void (*show)(size_t second, double rate)) {
  if (!resize(depth))
    return false;
  double begin = now(), last = begin;
  size_t count = 0;
  while (last - begin < seconds) {
    // Going back may take as long as the tokens before; it is not counted.
    if (izh_sequence_length(sequences[0]) >= depth + options.generate) {
      double paused = now();
      if (!resize(depth))
        return false;
      last += now() - paused;
    }
    if (!feed(1, 0, sequences.size()))
      return false;
    count += sequences.size();
    if (double time = now(); time - last >= 1) {
      rates->push_back(double(count) / (time - last));
      if (show)
        show(rates->size(), rates->back());
      count = 0;
      last = time;
    }
  }
  return true;
}

void compareEnds(Sustained *sustained) {
  constexpr size_t kMinute = 60;
  const std::vector<double> &rates = sustained->rates;
  size_t part = std::min(kMinute, rates.size() / 2);
  if (!part)
    return;
  sustained->first = std::accumulate(rates.begin(), rates.begin() + part, 0.0) / double(part);
  sustained->last = std::accumulate(rates.end() - part, rates.end(), 0.0) / double(part);
}

bool measureRows(const izh_model *model, const BenchOptions &options, uint64_t threads,
                 const std::vector<uint64_t> &depths, double loadMs, std::vector<BenchRow> *rows,
                 void (*show)(const BenchRow &row, const BenchOptions &options)) {
  izh_model_info info;
  izh_model_get_info(model, &info);
  Bench bench(options, info);
  double begin = now();
  uint64_t deepest = *std::max_element(depths.begin(), depths.end());
  if (!bench.start(model, threads, deepest) || !bench.feed(std::max<uint64_t>(options.prompt, 1)))
    return false;
  // Cold: threads, buffers and pages are touched for the first time.
  double ttftMs = loadMs + (now() - begin) * 1e3;
  for (const uint64_t &depth : depths) {
    // A prompt doesn't depend on what comes after it: once is enough.
    bool prompt = options.prompt && &depth == &depths.front();
    BenchRow row;
    row.threads = bench.threads();
    row.depth = depth;
    row.loadMs = loadMs;
    row.ttftMs = ttftMs;
    LimitMeter meter(model, row.threads);
    meter.measure();
    for (uint64_t i = 0; i < options.rounds; ++i) {
      BenchRound round;
      if (!bench.round(depth, prompt, &round))
        return false;
      if (prompt)
        row.prompt.push_back(round.prompt);
      if (options.generate)
        row.generation.push_back(round.generation);
      meter.measure();
    }
    row.limits = meter.limits();
    rate(row, model, options);
    if (show)
      show(row, options);
    rows->push_back(std::move(row));
  }
  return true;
}

} // namespace izh::rt
