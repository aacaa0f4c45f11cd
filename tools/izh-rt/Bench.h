// The measurements of `izh-rt bench`, and what they are measured by.

#pragma once

#include "tools/izh-rt/Limits.h"
#include "tools/izh-rt/Model.h"

#include <string>
#include <vector>

namespace izh::rt {

struct BenchOptions {
  ModelOptions model;
  std::string threads, contexts, svg;
  uint64_t prompt = 512, generate = 128, rounds = 5, depth = 0, sustain = 0, sequences = 1;
  bool json = false, markdown = false, serve = false;
};

// Speeds in tokens a second; 0 where nothing was asked for.
struct BenchRound {
  double prompt = 0, generation = 0;
};

// One context with some sequences. Failures have been told when false is returned.
class Bench {
public:
  Bench(const BenchOptions &options, const izh_model_info &info)
      : options(options), vocabulary(info.vocabulary) {}

  // Room for contexts of up to `depth` tokens and what is measured behind them.
  bool start(const izh_model *model, uint64_t threads, uint64_t depth);
  uint32_t threads() const { return izh_context_threads(context.get()); }
  // Appends `count` random tokens to the first sequence in one call.
  bool feed(uint64_t count) { return feed(count, 0, 1); }
  // Makes each sequence `count` tokens long.
  bool resize(uint64_t count);
  // A prompt (if `prompt`) in an empty sequence, then tokens one by one behind
  // `depth` others, for all sequences together.
  bool round(uint64_t depth, bool prompt, BenchRound *result);
  // Tokens one by one for `seconds`, the context between `depth` and
  // `depth` + -n tokens. Rates of about a second each; `show` is called with
  // each.
  bool sustain(uint64_t depth, double seconds, std::vector<double> *rates,
               void (*show)(size_t second, double rate));

private:
  // `count` tokens for each of `many` sequences from number `first` on.
  bool feed(uint64_t count, size_t first, size_t many);

  const BenchOptions &options;
  ContextPtr context;
  std::vector<izh_sequence *> sequences;
  std::vector<int32_t> tokens, best;
  uint64_t random = 1;
  uint32_t vocabulary;
};

// One number of threads at one length of context.
struct BenchRow {
  uint32_t threads = 0;
  uint64_t depth = 0;
  double loadMs = 0, ttftMs = 0;
  std::vector<double> prompt, generation; // a round each; empty: not measured
  MachineLimits limits;                   // taken between the rounds
  uint64_t bytesPerToken = 0;
  double promptPredicted = 0, generationPredicted = 0;
  // Of the machine's peak of operations, and of its read speed.
  double promptShare = 0, generationShare = 0;
};

// Rates of a long generation, and how the end compares to the beginning.
struct Sustained {
  uint32_t threads = 0;
  std::vector<double> rates;
  double first = 0, last = 0; // mean of the first and last minute, or half
};
void compareEnds(Sustained *sustained);

struct BenchResult {
  std::vector<MachineLimits> machine; // by threads
  std::vector<BenchRow> rows;
  std::vector<Sustained> sustained;
};

// All rows of one number of threads, appended; `show` is called with each.
bool measureRows(const izh_model *model, const BenchOptions &options, uint64_t threads,
                 const std::vector<uint64_t> &depths, double loadMs, std::vector<BenchRow> *rows,
                 void (*show)(const BenchRow &row, const BenchOptions &options));

} // namespace izh::rt
