// `izhc check`: what other versions of a model lose against a reference, on a
// text. All models see the same tokens, window by window.

#include "compiler/support/Error.h"
#include "tools/izhc/Agreement.h"
#include "tools/izhc/InputText.h"
#include "tools/izhc/Inspect.h"
#include "tools/izhc/QualityPlot.h"
#include "tools/izhc/Report.h"
#include "tools/izhc/RunnableModel.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <cmath>

namespace izhc::tool {
namespace {

using Models = std::vector<std::unique_ptr<RunnableModel>>;

struct Text {
  std::vector<int32_t> tokens;
  size_t window = 0;
  std::vector<int32_t> begin; // what a window begins with
};

llvm::Expected<Models> openAll(const CheckArguments &arguments) {
  Models models;
  for (const std::string &path : arguments.models) {
    auto model = RunnableModel::open(path, {arguments.exact, arguments.threads});
    if (!model)
      return model.takeError();
    models.push_back(std::move(*model));
  }
  return std::move(models);
}

// Only models that see the same tokens can be compared.
llvm::Expected<std::vector<int32_t>> tokenizeAlike(const Models &models, llvm::StringRef text) {
  auto tokens = models[0]->tokenize(text);
  if (!tokens)
    return tokens.takeError();
  for (auto &model : llvm::drop_begin(models)) {
    if (model->info().vocabulary != models[0]->info().vocabulary)
      return makeError("{0} has {1} columns of logits, but {2} has {3}: only models of one "
                       "vocabulary can be compared",
                       model->path(), model->info().vocabulary, models[0]->path(),
                       models[0]->info().vocabulary);
    auto others = model->tokenize(text);
    if (!others)
      return others.takeError();
    if (*others != *tokens)
      return makeError("{0} and {1} cut the text into different tokens: only models of one "
                       "tokenizer can be compared",
                       models[0]->path(), model->path());
  }
  return tokens;
}

llvm::Expected<Text> readText(const CheckArguments &arguments, const Models &models) {
  auto content = tool::readText(arguments.textFile);
  if (!content)
    return content.takeError();
  auto tokens = tokenizeAlike(models, *content);
  if (!tokens)
    return tokens.takeError();
  auto begin = models[0]->tokenize("");
  if (!begin)
    return begin.takeError();
  if (tokens->size() < 4)
    return makeError("'{0}' has {1} tokens, but at least 4 are needed", arguments.textFile,
                     tokens->size());
  Text text = {std::move(*tokens), arguments.window, std::move(*begin)};
  uint64_t room = UINT64_MAX;
  for (auto &model : models)
    if (model->info().context)
      room = std::min<uint64_t>(room, model->info().context);
  if (arguments.window > room)
    return makeError("--window is {0}, but the models were made for {1} tokens: lower it",
                     arguments.window, room);
  if (text.window == 0)
    text.window = std::min<uint64_t>(512, room);
  // A text that is shorter than a window is one.
  text.window = std::min(text.window, text.tokens.size());
  return std::move(text);
}

class Comparison {
public:
  Comparison(const Models &models, const Text &text) : models(models), text(text) {
    piece = text.window;
    for (auto &model : models)
      piece = std::min<size_t>(piece, std::max(model->info().max_step_tokens, 1u));
    vocabulary = models[0]->info().vocabulary;
    logits.resize(piece * vocabulary);
    reference.resize(piece);
    results.resize(models.size());
  }

  llvm::Error run() {
    for (auto &model : models)
      if (llvm::Error error = model->prepare(text.window))
        return error;
    ProgressBar bar;
    size_t windows = text.tokens.size() / text.window;
    for (size_t i = 0; i < windows; ++i) {
      bar.show("comparing", double(i) / windows);
      std::vector<int32_t> tokens(text.tokens.begin() + i * text.window,
                                  text.tokens.begin() + (i + 1) * text.window);
      if (!text.begin.empty())
        tokens[0] = text.begin[0];
      if (llvm::Error error = runWindow(tokens))
        return error;
    }
    return llvm::Error::success();
  }

  std::vector<Agreement> results; // of each model, the reference first

private:
  llvm::Error runWindow(llvm::ArrayRef<int32_t> tokens) {
    for (auto &model : models)
      if (llvm::Error error = model->restart())
        return error;
    // The last token is only predicted; the first half gives context.
    size_t firstRow = tokens.size() / 2, end = tokens.size() - 1;
    for (size_t done = 0; done < end;) {
      size_t now = std::min(piece, end - done);
      size_t rows = std::min(now, done + now > firstRow ? done + now - firstRow : 0);
      done += now;
      for (size_t i = 0; i < models.size(); ++i)
        if (llvm::Error error = runPiece(i, tokens, done, now, rows))
          return error;
    }
    return llvm::Error::success();
  }

  // Runs `count` tokens up to `done` through model `index` and scores the last
  // `rows` of them; row i predicts token i + 1.
  llvm::Error runPiece(size_t index, llvm::ArrayRef<int32_t> tokens, size_t done, size_t count,
                       size_t rows) {
    if (llvm::Error error =
            models[index]->run(tokens.slice(done - count, count), uint32_t(rows), logits))
      return error;
    for (size_t row = 0; row < rows; ++row) {
      llvm::ArrayRef<float> values(logits.data() + row * vocabulary, vocabulary);
      std::vector<double> &target = index == 0 ? reference[row] : other;
      if (!logSoftmax(values, target))
        return makeError("{0}: the logits after token {1} are not finite numbers: weights of the "
                         "model are damaged, or were before it was compiled",
                         models[index]->path(), done - rows + row);
      int32_t next = tokens[done - rows + row + 1];
      if (next >= 0 && size_t(next) < vocabulary)
        results[index].add(reference[row], target, next);
    }
    return llvm::Error::success();
  }

  const Models &models;
  const Text &text;
  size_t piece, vocabulary;
  std::vector<float> logits;
  std::vector<std::vector<double>> reference; // log-probabilities of a piece's rows
  std::vector<double> other;
};

double bitsPerWeight(const izh_model_info &info) {
  return info.parameters ? 8.0 * double(info.weight_bytes) / double(info.parameters) : 0;
}

double perplexity(const Agreement &agreement) { return std::exp(agreement.loss().value()); }

void printTable(const Models &models, const std::vector<Agreement> &results,
                llvm::raw_ostream &out) {
  out << "| model | weights, MB | bits a weight | perplexity | mean KL, nats | 99 % of KL below "
         "| same best token |\n| --- | --: | --: | --: | --: | --: | --: |\n";
  for (size_t i = 0; i < models.size(); ++i) {
    const Agreement &result = results[i];
    double ppl = perplexity(result);
    out << llvm::formatv("| {0} | {1:f1} | {2:f2} | {3:f4} ± {4:f4} |", models[i]->name(),
                         models[i]->info().weight_bytes / 1e6, bitsPerWeight(models[i]->info()),
                         ppl, ppl * result.loss().standardError());
    if (i == 0)
      out << " reference | | |\n";
    else
      out << llvm::formatv(" {0:e2} ± {1:e1} | {2:e2} | {3:f2} % |\n", result.divergence().value(),
                           result.divergence().standardError(), result.divergenceQuantile(0.99),
                           100 * result.sameBest().value());
  }
}

void printJson(const Models &models, const std::vector<Agreement> &results, const Text &text,
               llvm::raw_ostream &stream) {
  llvm::json::OStream out(stream, 1);
  out.object([&] {
    out.attribute("window", int64_t(text.window));
    out.attribute("tokens", int64_t(results[0].loss().count()));
    out.attributeArray("models", [&] {
      for (size_t i = 0; i < models.size(); ++i)
        out.object([&] {
          const Agreement &result = results[i];
          out.attribute("model", clean(models[i]->path()));
          out.attribute("weight_bytes", int64_t(models[i]->info().weight_bytes));
          out.attribute("bits_per_weight", bitsPerWeight(models[i]->info()));
          out.attribute("perplexity", perplexity(result));
          out.attribute("nll", result.loss().value());
          out.attribute("nll_error", result.loss().standardError());
          if (i == 0)
            return;
          out.attribute("kl", result.divergence().value());
          out.attribute("kl_error", result.divergence().standardError());
          out.attribute("kl_p99", result.divergenceQuantile(0.99));
          out.attribute("kl_max", result.greatestDivergence());
          out.attribute("same_best", result.sameBest().value());
        });
    });
  });
  stream << "\n";
}

llvm::Error writePlot(const std::string &path, const Models &models,
                      const std::vector<Agreement> &results) {
  std::vector<QualityPoint> points;
  for (size_t i = 1; i < models.size(); ++i)
    points.push_back(
        {models[i]->name(), models[i]->info().weight_bytes / 1e6, results[i].divergence().value()});
  std::error_code code;
  llvm::raw_fd_ostream out(path, code);
  if (!code) {
    writeQualityPlot(models[0]->name(), points, out);
    out.close();
    code = out.error();
    out.clear_error();
  }
  return code ? makeError("cannot write '{0}': {1}", path, code.message()) : llvm::Error::success();
}

} // namespace

int check(const CheckArguments &arguments) {
  llvm::SmallVector<llvm::StringRef> inputs(arguments.models.begin(), arguments.models.end());
  inputs.push_back(arguments.textFile);
  if (!arguments.plot.empty())
    if (llvm::Error error = checkOutput(inputs, arguments.plot, "--svg"))
      return report(std::move(error), kWrongUsage);
  auto models = openAll(arguments);
  if (!models)
    return report(models.takeError());
  auto text = readText(arguments, *models);
  if (!text)
    return report(text.takeError());
  Comparison comparison(*models, *text);
  if (llvm::Error error = comparison.run())
    return report(std::move(error));
  if (comparison.results[0].loss().count() == 0)
    return report(makeError("no token of '{0}' could be scored", arguments.textFile));
  if (arguments.json)
    printJson(*models, comparison.results, *text, llvm::outs());
  else
    printTable(*models, comparison.results, llvm::outs());
  if (!arguments.plot.empty())
    if (llvm::Error error = writePlot(arguments.plot, *models, comparison.results))
      return report(std::move(error));
  return kDone;
}

} // namespace izhc::tool
