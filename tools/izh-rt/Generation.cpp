// Prompt in chunks, then token by token.

#include "tools/izh-rt/Generation.h"

#include <algorithm>

namespace izh::rt {

std::string TextStream::feed(int32_t id, bool *stopped) {
  std::string bytes = tokenBytes(model, id, /*special=*/false);
  std::string text(3 * (bytes.size() + 4), '\0');
  text.resize(izh_utf8_feed(&characters, bytes.data(), bytes.size(), text.data()));
  return finder.feed(text, stopped);
}

std::string TextStream::finish() {
  char text[3 * 4 + 4];
  bool stopped = false;
  std::string last = finder.feed(std::string(text, izh_utf8_finish(&characters, text)), &stopped);
  return last + finder.finish();
}

namespace {

class Generator {
public:
  Generator(const izh_model *model, izh_context *context, const GenerationOptions &options,
            const volatile bool &interrupted, Generation &result)
      : model(model), context(context), options(options), interrupted(interrupted), result(result) {
    izh_model_info info;
    izh_model_get_info(model, &info);
    vocabulary = info.vocabulary;
    // Then the largest logit is all that is asked of a row.
    greedy = options.sampling.temperature == 0 && options.sampling.repeat_penalty == 1;
    if (!greedy)
      logits.resize(vocabulary);
    chunk = std::max<uint32_t>(info.max_step_tokens, 1);
  }

  bool start() {
    izh_error error = {};
    izh_sampler *made = nullptr;
    if (izh_sequence_create(context, &sequence, &error) != IZH_OK ||
        izh_sampler_create(&options.sampling, vocabulary, &made, &error) != IZH_OK) {
      failed(error);
      return false;
    }
    sampler.reset(made);
    return true;
  }

  // False after a message; a prompt that was interrupted sets `stop`.
  bool readPrompt(const std::vector<int32_t> &prompt) {
    double begin = now();
    for (size_t done = 0; done < prompt.size();) {
      if (interrupted) {
        result.stop = "interrupt";
        return true;
      }
      size_t count = std::min<size_t>(chunk, prompt.size() - done);
      if (!step(prompt.data() + done, uint32_t(count), done + count == prompt.size()))
        return false;
      done += count;
    }
    for (int32_t id : prompt)
      izh_sampler_accept(sampler.get(), id);
    result.promptSeconds = now() - begin;
    return true;
  }

  bool makeTokens(const std::function<bool(const std::string &)> &show) {
    bool good = loop(show);
    if (result.firstTokenTime > 0)
      result.generationSeconds = now() - result.firstTokenTime;
    return good;
  }

private:
  bool loop(const std::function<bool(const std::string &)> &show) {
    TextStream text(model, options.stops);
    while (result.stop.empty()) {
      if (result.tokens.size() >= options.tokens) {
        result.stop = "length";
        break;
      }
      int32_t id = greedy ? best : izh_sampler_next(sampler.get(), logits.data());
      result.tokens.push_back(id);
      if (result.tokens.size() == 1)
        result.firstTokenTime = now();
      bool stopped = false;
      if (!options.ignoreEnd && izh_token_ends_text(model, id))
        result.stop = "eos";
      else if (!show(text.feed(id, &stopped)))
        return cannotPrint() == kDone;
      if (stopped)
        result.stop = "string";
      if (interrupted && result.stop.empty())
        result.stop = "interrupt";
      if (result.stop.empty() && !next(id))
        return false;
    }
    if (result.stop != "string" && !show(text.finish()))
      return cannotPrint() == kDone;
    return true;
  }

  bool step(const int32_t *tokens, uint32_t count, bool output) {
    izh_input input = {sequence, tokens, count, output ? 1u : 0u};
    izh_error error = {};
    izh_status status = greedy ? izh_context_run_best(context, &input, 1, &best, &error)
                               : izh_context_run(context, &input, 1, logits.data(), &error);
    if (status != IZH_OK) {
      failed(error);
      return false;
    }
    uint64_t last = izh_sequence_length(sequence) - 1;
    if (!output)
      return true;
    return greedy ? checkChoice(best, last) : checkLogits(logits.data(), logits.size(), last);
  }

  // Appends a token; a full context ends the text.
  bool next(int32_t id) {
    if (result.tokens.size() >= options.tokens)
      result.stop = "length";
    else if (izh_sequence_length(sequence) >= izh_context_tokens(context))
      result.stop = "context";
    return !result.stop.empty() || step(&id, 1, true);
  }

  const izh_model *model;
  izh_context *context;
  const GenerationOptions &options;
  const volatile bool &interrupted;
  Generation &result;
  izh_sequence *sequence = nullptr; // goes with the context
  SamplerPtr sampler;
  std::vector<float> logits; // where not only the largest is of interest
  bool greedy;
  int32_t best = -1;
  uint32_t chunk, vocabulary;
};

} // namespace

bool generate(const izh_model *model, izh_context *context, const std::vector<int32_t> &prompt,
              const GenerationOptions &options, const volatile bool &interrupted,
              const std::function<bool(const std::string &)> &show, Generation *result) {
  Generator generator(model, context, options, interrupted, *result);
  return generator.start() && generator.readPrompt(prompt) && generator.makeTokens(show);
}

} // namespace izh::rt
