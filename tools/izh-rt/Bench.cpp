// Rounds of prompts and generated tokens, with the machine's limits measured
// between them.

#include "tools/izh-rt/Bench.h"

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
  row.bytesPerStep = work.weightBytesPerToken +
                      row.batch * cacheBytesRead(info, row.depth + options.generate / 2);
  if (!row.generation.empty()) {
    row.generationPredicted = predictGeneration(row.limits, work, row.bytesPerStep, row.batch);
    double steps = median(row.generation) / double(row.batch);
    if (row.limits.readGbps > 0)
      row.generationShare = steps * double(row.bytesPerStep) / 1e9 / row.limits.readGbps;
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

bool Bench::start(const izh_model *model, uint64_t threads, uint64_t depth, uint64_t batch) {
  uint64_t room = std::max({options.prompt, batch * (depth + options.generate), uint64_t(17)});
  context = createContext(model, threads, std::max(room, options.model.contextTokens),
                          uint32_t(batch));
  if (!context)
    return false;
  sequences.resize(batch);
  logits.resize(batch * vocabulary);
  return std::all_of(sequences.begin(), sequences.end(), [&](izh_sequence *&sequence) {
    return check([&](izh_error *error) {
      return izh_sequence_create(context.get(), &sequence, error);
    });
  });
}

int32_t Bench::nextToken() {
  // Knuth's generator: the tokens are of no interest, but the same each time.
  random = random * 6364136223846793005u + 1442695040888963407u;
  return int32_t((random >> 33) % vocabulary);
}

bool Bench::run(const std::vector<izh_input> &inputs) {
  return check([&](izh_error *error) {
    return izh_context_run(context.get(), inputs.data(), uint32_t(inputs.size()), logits.data(),
                           error);
  });
}

bool Bench::feed(izh_sequence *sequence, uint64_t count) {
  if (!count)
    return true;
  tokens.resize(count);
  for (int32_t &token : tokens)
    token = nextToken();
  return run({{sequence, tokens.data(), uint32_t(count), 1}});
}

bool Bench::step() {
  tokens.resize(sequences.size());
  std::vector<izh_input> inputs;
  for (size_t i = 0; i < sequences.size(); ++i) {
    tokens[i] = nextToken();
    inputs.push_back({sequences[i], &tokens[i], 1, 1});
  }
  return run(inputs);
}

bool Bench::resize(uint64_t count) {
  for (izh_sequence *sequence : sequences) {
    uint64_t length = izh_sequence_length(sequence);
    // Not every model can forget a part of its context.
    if (length > count && izh_sequence_truncate(sequence, uint32_t(count), nullptr) != IZH_OK &&
        !check([&](izh_error *error) { return izh_sequence_truncate(sequence, 0, error); }))
      return false;
  }
  // Room is freed by all before any of them grows.
  for (izh_sequence *sequence : sequences)
    if (!feed(sequence, count - izh_sequence_length(sequence)))
      return false;
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
      if (!step())
        return false;
    result->generation = double(sequences.size() * options.generate) / (now() - begin);
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
    if (izh_sequence_length(sequences.front()) >= depth + options.generate) {
      double paused = now();
      if (!resize(depth))
        return false;
      last += now() - paused;
    }
    if (!feed(1))
      return false;
    ++count;
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
                 uint64_t batch, const std::vector<uint64_t> &depths, double loadMs,
                 std::vector<BenchRow> *rows,
                 void (*show)(const BenchRow &row, const BenchOptions &options)) {
  izh_model_info info;
  izh_model_get_info(model, &info);
  Bench bench(options, info);
  double begin = now();
  uint64_t deepest = *std::max_element(depths.begin(), depths.end());
  if (!bench.start(model, threads, deepest, batch) || !bench.feed(std::max<uint64_t>(options.prompt, 1)))
    return false;
  // Cold: threads, buffers and pages are touched for the first time.
  double ttftMs = loadMs + (now() - begin) * 1e3;
  for (const uint64_t &depth : depths) {
    // A prompt depends neither on what comes after it nor on other sequences:
    // once is enough.
    bool prompt = options.prompt && std::none_of(rows->begin(), rows->end(), [&](const auto &row) {
                    return row.threads == bench.threads();
                  });
    BenchRow row;
    row.threads = bench.threads();
    row.depth = depth;
    row.batch = batch;
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
