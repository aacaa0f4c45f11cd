// `izh-rt perplexity`: exp of the mean negative log-likelihood of the tokens in
// the second half of each window.

#include "tools/izh-rt/Commands.h"
#include "tools/izh-rt/Json.h"
#include "tools/izh-rt/Model.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <unistd.h>

namespace izh::rt {
namespace {

double negativeLogLikelihood(const float *logits, size_t vocabulary, int32_t id) {
  float most = *std::max_element(logits, logits + vocabulary);
  double sum = 0;
  for (size_t i = 0; i < vocabulary; ++i)
    sum += std::exp(double(logits[i]) - most);
  return std::log(sum) + most - logits[id];
}

struct Score {
  double sum = 0, squares = 0;
  size_t tokens = 0, windows = 0;

  void add(double loss) {
    sum += loss;
    squares += loss * loss;
    ++tokens;
  }
  double mean() const { return sum / double(tokens); }
  // Of the mean.
  double standardError() const {
    double variance = std::max(0.0, squares / double(tokens) - mean() * mean());
    return std::sqrt(variance / double(std::max<size_t>(tokens - 1, 1)));
  }
};

class Scorer {
public:
  Scorer(izh_context *context, const izh_model_info &info)
      : context(context), vocabulary(info.vocabulary),
        piece(std::max<uint32_t>(info.max_step_tokens, 1)), logits(vocabulary * piece) {}

  // Scores the tokens behind the first half; row i predicts token i + 1.
  bool window(const int32_t *tokens, size_t count, Score *score) {
    izh_error error = {};
    izh_sequence *sequence = nullptr;
    if (izh_sequence_create(context, &sequence, &error) != IZH_OK) {
      failed(error);
      return false;
    }
    bool done = pieces(sequence, tokens, count, score);
    izh_sequence_destroy(sequence);
    ++score->windows;
    return done;
  }

private:
  bool pieces(izh_sequence *sequence, const int32_t *tokens, size_t count, Score *score) {
    size_t firstRow = count / 2;
    // The last token is only predicted.
    for (size_t done = 0; done + 1 < count;) {
      size_t now = std::min(piece, count - 1 - done);
      size_t outputs = std::min(now, done + now > firstRow ? done + now - firstRow : 0);
      izh_input input = {sequence, tokens + done, uint32_t(now), uint32_t(outputs)};
      izh_error error = {};
      if (izh_context_run(context, &input, 1, logits.data(), &error) != IZH_OK) {
        failed(error);
        return false;
      }
      done += now;
      for (size_t row = 0; row < outputs; ++row) {
        size_t place = done - outputs + row;
        if (!checkLogits(logits.data() + row * vocabulary, vocabulary, place))
          return false;
        int32_t next = tokens[place + 1];
        if (next >= 0 && size_t(next) < vocabulary)
          score->add(negativeLogLikelihood(logits.data() + row * vocabulary, vocabulary, next));
      }
    }
    return true;
  }

  izh_context *context;
  size_t vocabulary, piece;
  std::vector<float> logits;
};

struct PerplexityOptions {
  ModelOptions model;
  std::string file;
  uint64_t window = 0; // 0: 512, or the model's context where that is less
  bool json = false;
};

bool scoreText(const izh_model *model, izh_context *context, const izh_model_info &info,
               std::vector<int32_t> &tokens, size_t window, Score *score) {
  std::vector<int32_t> begin;
  if (!tokenizeText(model, "", true, false, &begin))
    return false;
  Scorer scorer(context, info);
  size_t windows = tokens.size() / window;
  for (size_t i = 0; i < windows; ++i) {
    int32_t *first = tokens.data() + i * window;
    if (!begin.empty())
      first[0] = begin[0];
    if (!scorer.window(first, window, score))
      return false;
    if (isatty(STDERR_FILENO))
      fprintf(stderr, "\rwindow %zu of %zu, perplexity %.4f\033[K%s", i + 1, windows,
              std::exp(score->mean()), i + 1 == windows ? "\n" : "");
  }
  return true;
}

} // namespace

int perplexityCommand(int count, char **words) {
  PerplexityOptions options;
  Arguments arguments("izh-rt perplexity", "Tells how well the model predicts a text.");
  declareRun(arguments, options.model, "those of a window");
  arguments.text("-f,--file", "FILE", &options.file, "a file with the text; - for input");
  arguments.integer("--window", "N", &options.window, 4, 1u << 20,
                    "tokens seen at once; those of the second half are scored (512)");
  arguments.flag("--json", &options.json, "prints one JSON object");
  int status;
  if (!arguments.parse(count, words, &status))
    return status;
  if (options.file.empty())
    return arguments.misuse("-f FILE is missing");

  ModelPtr model = openModel(options.model);
  std::string text;
  std::vector<int32_t> tokens;
  if (!model || !readFile(options.file, &text) ||
      !tokenizeText(model.get(), text, true, false, &tokens))
    return kFailed;
  if (tokens.size() < 4)
    return failed("'" + options.file + "' has " + std::to_string(tokens.size()) +
                  " tokens, but at least 4 are needed");
  izh_model_info info;
  izh_model_get_info(model.get(), &info);
  uint64_t room = options.model.contextTokens ? options.model.contextTokens : info.context;
  uint64_t wanted = options.window ? options.window : 512;
  if (!options.window && room)
    wanted = std::min(wanted, room);
  // A text that is shorter than a window is one.
  size_t window = std::min<uint64_t>(wanted, tokens.size());
  if (room && window > room)
    return failed("a window of " + std::to_string(window) +
                  " tokens was asked for, but there is room for " + std::to_string(room) +
                  ": lower --window" + (options.model.contextTokens ? " or raise --ctx" : ""));
  ContextPtr context = createContext(model.get(), options.model.threads,
                                     options.model.contextTokens ? room : window, 1);
  Score score;
  if (!context || !scoreText(model.get(), context.get(), info, tokens, window, &score))
    return kFailed;
  if (score.tokens == 0)
    return failed("no token of '" + options.file + "' could be scored");
  double perplexity = std::exp(score.mean());
  double error = perplexity * score.standardError();
  if (options.json)
    printf("%s\n", JsonObject()
                       .number("perplexity", perplexity, 9)
                       .number("error", error)
                       .number("nll", score.mean(), 9)
                       .count("tokens", score.tokens)
                       .count("windows", score.windows)
                       .count("window", window)
                       .text("variant", info.variant)
                       .count("threads", izh_context_threads(context.get()))
                       .str()
                       .c_str());
  else
    printf("perplexity %.4f +- %.4f over %zu tokens in %zu windows of %zu\n", perplexity, error,
           score.tokens, score.windows, window);
  return kDone;
}

} // namespace izh::rt
