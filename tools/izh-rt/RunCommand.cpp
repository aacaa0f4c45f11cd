// `izh-rt run`: streams the continuation of a prompt.

#include "tools/izh-rt/Commands.h"
#include "tools/izh-rt/Generation.h"
#include "tools/izh-rt/Json.h"
#include "tools/izh-rt/Sampling.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <unistd.h>

namespace izh::rt {
namespace {

volatile bool interrupted = false;

void onInterrupt(int) { interrupted = true; }

// The first Ctrl-C ends the text, a second one the program.
void catchInterrupt() {
  struct sigaction action = {};
  action.sa_handler = onInterrupt;
  action.sa_flags = SA_RESETHAND;
  sigaction(SIGINT, &action, nullptr);
}

struct RunOptions {
  ModelOptions model;
  SamplingArguments sampling;
  std::string prompt, promptFile;
  bool hasPrompt = false, json = false;
};

void declare(Arguments &arguments, RunOptions &options) {
  declareRun(arguments, options.model, "prompt and -n, at most the model's context");
  arguments.text("-p,--prompt", "TEXT", &options.prompt, &options.hasPrompt,
                 "the text to continue; special tokens in it are recognised");
  arguments.text("-f,--file", "FILE", &options.promptFile, "a file with the text; - for input");
  arguments.integer("-n,--tokens", "N", &options.sampling.generation.tokens, 0, 1u << 30,
                    "most tokens to generate (256)");
  declareSampling(arguments, options.sampling);
  arguments.flag("--ignore-eos", &options.sampling.generation.ignoreEnd,
                 "goes on where the model would end the text");
  arguments.flag("--json", &options.json, "prints one JSON object at the end instead of the text");
}

// Checks what the parser can't; fills in the rest. Returns a sentence or "".
std::string complete(RunOptions &options) {
  if (options.hasPrompt == !options.promptFile.empty())
    return options.hasPrompt ? "-p and -f exclude each other" : "-p TEXT or -f FILE is missing";
  return completeSampling(options.sampling);
}

// Rates are NAN where too little was done to tell one.
struct Timings {
  double loadMs, ttftMs, promptTps, generationTps;
  size_t promptTokens, generatedTokens;
  std::string variant;
  uint32_t threads;
  uint64_t seed;
};

// "5 tokens at 12.3 tokens/s"
std::string tokensAt(size_t count, double rate) {
  std::string text = std::to_string(count) + (count == 1 ? " token" : " tokens");
  char speed[32];
  snprintf(speed, sizeof(speed), " at %.1f tokens/s", rate);
  return std::isfinite(rate) ? text + speed : text;
}

// What ended the text before the model did.
std::string cutBy(const std::string &stop, uint32_t contextTokens) {
  if (stop == "length")
    return " (cut by -n)";
  if (stop == "context")
    return " (cut: the context of " + std::to_string(contextTokens) + " tokens is full)";
  return "";
}

void printSummary(const Timings &t, const std::string &cut) {
  fprintf(stderr,
          "load %.0f ms, first token after %.0f ms, prompt %s, generation %s%s, variant %s, "
          "%u thread%s, seed %llu\n",
          t.loadMs, t.ttftMs, tokensAt(t.promptTokens, t.promptTps).c_str(),
          tokensAt(t.generatedTokens, t.generationTps).c_str(), cut.c_str(), t.variant.c_str(),
          t.threads, t.threads == 1 ? "" : "s", static_cast<unsigned long long>(t.seed));
}

// A text that the model ends with its first token is mostly one that it was
// not trained to go on with.
void explainEmpty(const izh_model_info &info, const std::string &file) {
  std::string sentence = "izh-rt: the model ended the text at once";
  if (*info.chat_template)
    sentence += ": 'izh-rt chat " + file + "' applies its chat template";
  fprintf(stderr, "%s\n", sentence.c_str());
}

std::string timingsJson(const Timings &t) {
  return JsonObject()
      .number("load_ms", t.loadMs)
      .number("ttft_ms", t.ttftMs)
      .count("prompt_tokens", t.promptTokens)
      .number("prompt_tps", t.promptTps)
      .count("generated_tokens", t.generatedTokens)
      .number("generation_tps", t.generationTps)
      .text("variant", t.variant)
      .count("threads", t.threads)
      .count("seed", t.seed)
      .str();
}

Timings measure(const Generation &result, const RunOptions &options, size_t promptTokens,
                double loaded, const izh_model_info &info, const izh_context *context) {
  size_t later = result.tokens.empty() ? 0 : result.tokens.size() - 1;
  auto rate = [](size_t count, double seconds) {
    return count && seconds > 0 ? double(count) / seconds : NAN;
  };
  return {(loaded - startTime) * 1e3,
          result.firstTokenTime > 0 ? (result.firstTokenTime - startTime) * 1e3 : 0,
          rate(promptTokens, result.promptSeconds),
          rate(later, result.generationSeconds),
          promptTokens,
          result.tokens.size(),
          info.variant,
          izh_context_threads(context),
          options.sampling.generation.sampling.seed};
}

// Cache for prompt and answer, as far as the model goes.
uint64_t contextFor(const RunOptions &options, size_t promptTokens, const izh_model_info &info) {
  if (options.model.contextTokens)
    return options.model.contextTokens;
  uint64_t wanted = promptTokens + options.sampling.generation.tokens;
  return std::max<uint64_t>(1, info.context ? std::min<uint64_t>(wanted, info.context) : wanted);
}

} // namespace

int runCommand(int count, char **words) {
  RunOptions options;
  Arguments arguments("izh-rt run", "Continues a text.");
  declare(arguments, options);
  int status;
  if (!arguments.parse(count, words, &status))
    return status;
  if (std::string sentence = complete(options); !sentence.empty())
    return arguments.misuse(sentence);

  ModelPtr model = openModel(options.model);
  if (!model)
    return kFailed;
  izh_model_info info;
  izh_model_get_info(model.get(), &info);
  std::vector<int32_t> prompt;
  if (!options.promptFile.empty() && !readFile(options.promptFile, &options.prompt))
    return kFailed;
  if (!tokenizeText(model.get(), options.prompt, true, true, &prompt))
    return kFailed;
  if (prompt.empty())
    return failed("the prompt is empty, and this model has no token that begins a text: "
                  "give some text with -p");
  uint64_t tokens = contextFor(options, prompt.size(), info);
  if (prompt.size() > tokens)
    return failed("the prompt has " + std::to_string(prompt.size()) +
                  " tokens, but there is room for " + std::to_string(tokens) + ": shorten it" +
                  (options.model.contextTokens ? " or raise --ctx" : ""));
  ContextPtr context = createContext(model.get(), options.model.threads, tokens, 1);
  if (!context)
    return kFailed;

  double loaded = now();
  catchInterrupt();
  std::string text;
  Generation result;
  char last = '\n';
  auto show = [&](const std::string &piece) {
    if (!piece.empty())
      last = piece.back();
    if (!options.json)
      return writeAll(piece);
    text += piece;
    return true;
  };
  if (!generate(model.get(), context.get(), prompt, options.sampling.generation, interrupted, show,
                &result))
    return kFailed;
  Timings timings = measure(result, options, prompt.size(), loaded, info, context.get());
  if (options.json)
    printf("%s\n", JsonObject()
                       .text("text", text)
                       .add("tokens", jsonIds(result.tokens))
                       .text("stop", result.stop)
                       .add("timings", timingsJson(timings))
                       .str()
                       .c_str());
  else if (last != '\n')
    // Standard output holds the text and nothing else where that may matter.
    (void)!write(isatty(STDOUT_FILENO) ? STDOUT_FILENO : STDERR_FILENO, "\n", 1);
  if (result.stop == "eos" && result.tokens.size() == 1)
    explainEmpty(info, options.model.file);
  printSummary(timings, cutBy(result.stop, izh_context_tokens(context.get())));
  return kDone;
}

} // namespace izh::rt
