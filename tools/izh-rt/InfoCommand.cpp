// `izh-rt info`, `verify` and `tokenize`: what needs a model but doesn't run it.

#include "tools/izh-rt/Commands.h"
#include "tools/izh-rt/Json.h"
#include "tools/izh-rt/Model.h"

#include <algorithm>
#include <cstdio>

namespace izh::rt {
namespace {

struct Skipped {
  std::string variant, reason;
};

std::vector<Skipped> skippedVariants(const izh_model *model, uint32_t count) {
  std::vector<Skipped> skipped;
  for (uint32_t i = 0; i < count; ++i) {
    const char *name = nullptr, *reason = nullptr;
    if (izh_model_variant(model, i, &name, &reason) == IZH_OK && *reason)
      skipped.push_back({name, reason});
  }
  return skipped;
}

std::string memoryJson(const izh_memory &memory, uint64_t tokens) {
  return JsonObject()
      .count("tokens", tokens)
      .count("buffers", memory.buffers)
      .count("cache", memory.cache)
      .count("file", memory.file)
      .add("file_mapped", memory.file_mapped ? "true" : "false")
      .count("peak", memory.peak)
      .count("limit", memory.limit)
      .str();
}

// What a run with so many tokens takes, at most.
struct Needs {
  uint64_t tokens;
  izh_memory memory;
};

bool findNeeds(const izh_model *model, const izh_model_info &info, const ModelOptions &options,
               Needs *needs) {
  constexpr uint64_t kUsual = 4096;
  needs->tokens = options.contextTokens;
  if (!needs->tokens)
    needs->tokens = info.context ? std::min<uint64_t>(info.context, kUsual) : kUsual;
  izh_context_options sizes = {0, uint32_t(needs->tokens), 1};
  izh_error error = {};
  if (izh_context_memory(model, &sizes, &needs->memory, &error) == IZH_OK)
    return true;
  failed(error);
  return false;
}

void printNeeds(const Needs &needs) {
  const izh_memory &memory = needs.memory;
  auto megabytes = [](uint64_t bytes) { return double(bytes) / 1e6; };
  printf("a run of up to %llu tokens takes at most %.2f MB: buffers %.2f, cache %.2f, file %.2f "
         "(%s)\n",
         static_cast<unsigned long long>(needs.tokens), megabytes(memory.peak),
         megabytes(memory.buffers), megabytes(memory.cache), megabytes(memory.file),
         memory.file_mapped ? "mapped: shared, and dropped where memory is short" : "read");
  printf("this process may use %.0f MB%s\n", megabytes(memory.limit),
         memory.peak > memory.limit ? ", which is less" : "");
}

std::string infoJson(const izh_model_info &info, const ModelOptions &options,
                     const std::vector<Skipped> &skipped, const Needs &needs) {
  std::vector<std::string> list;
  for (const Skipped &one : skipped)
    list.push_back(JsonObject().text("variant", one.variant).text("reason", one.reason).str());
  return JsonObject()
      .text("file", options.file)
      .text("architecture", info.architecture)
      .text("name", info.name)
      .add("variant", *info.variant ? jsonString(info.variant) : "null")
      .add("skipped", jsonList(list))
      .count("parameters", info.parameters)
      .count("vocabulary", info.vocabulary)
      .count("context", info.context)
      .count("embedding", info.embedding)
      .count("layers", info.layers)
      .count("max_step_tokens", info.max_step_tokens)
      .count("file_bytes", info.file_bytes)
      .count("weight_bytes", info.weight_bytes)
      .count("code_bytes", info.code_bytes)
      .count("arena_bytes", info.arena_bytes)
      .count("cache_bytes_per_token", info.cache_bytes_per_token)
      .count("window", info.window)
      .count("window_bytes_per_token", info.window_bytes_per_token)
      .add("memory", memoryJson(needs.memory, needs.tokens))
      .add("tokenizer", info.has_tokenizer ? "true" : "false")
      .text("chat_template", info.chat_template)
      .text("compiler", info.compiler)
      .text("command_line", info.command_line)
      .text("source", info.source)
      .text("source_hash", info.source_hash)
      .text("recipe", info.recipe)
      .str();
}

void printInfo(const izh_model_info &info, const std::vector<Skipped> &skipped,
               const Needs &needs) {
  printf("%s (%s), %.1f M parameters, %u layers, vocabulary of %u, context of %u\n", info.name,
         info.architecture, double(info.parameters) / 1e6, info.layers, info.vocabulary,
         info.context);
  printf("file %.2f MB, weights %.2f MB, code %.1f KB\n", double(info.file_bytes) / 1e6,
         double(info.weight_bytes) / 1e6, double(info.code_bytes) / 1e3);
  printf("cache %.1f KB a token", double(info.cache_bytes_per_token) / 1e3);
  if (info.window)
    printf(", and %.1f KB for each of the last %u", double(info.window_bytes_per_token) / 1e3,
           info.window);
  printf("\n");
  printNeeds(needs);
  if (*info.variant)
    printf("variant %s\n", info.variant);
  else
    printf("no variant runs on this machine\n");
  for (const Skipped &one : skipped)
    printf("  not %s: %s\n", one.variant.c_str(), one.reason.c_str());
  printf("tokenizer %s, chat template %s\n", info.has_tokenizer ? "yes" : "no",
         *info.chat_template ? "yes" : "no");
  printf("made of %s (%s, %s) by %s\n  %s\n", info.source, info.source_hash, info.recipe,
         info.compiler, info.command_line);
}

} // namespace

int infoCommand(int count, char **words) {
  ModelOptions options;
  bool json = false;
  Arguments arguments("izh-rt info", "Tells what is in a file and which variant would run.");
  declareModel(arguments, options);
  arguments.integer("--ctx,-c", "N", &options.contextTokens, 1, 1u << 24,
                    "tokens of the run whose memory is told (the model's, at most 4096)");
  arguments.flag("--json", &json, "prints one JSON object");
  int status;
  if (!arguments.parse(count, words, &status))
    return status;
  ModelPtr model = openModel(options, /*run=*/false);
  if (!model)
    return kFailed;
  izh_model_info info;
  izh_model_get_info(model.get(), &info);
  std::vector<Skipped> skipped = skippedVariants(model.get(), info.variants);
  Needs needs;
  if (!findNeeds(model.get(), info, options, &needs))
    return kFailed;
  if (json)
    printf("%s\n", infoJson(info, options, skipped, needs).c_str());
  else
    printInfo(info, skipped, needs);
  return kDone;
}

int verifyCommand(int count, char **words) {
  ModelOptions options;
  Arguments arguments("izh-rt verify", "Reads the whole file and compares every hash.");
  declareModel(arguments, options);
  int status;
  if (!arguments.parse(count, words, &status))
    return status;
  double begin = now();
  ModelPtr model = openModel(options, /*run=*/false);
  if (!model)
    return kFailed;
  izh_error error = {};
  if (izh_model_verify(model.get(), &error) != IZH_OK)
    return failed(error);
  izh_model_info info;
  izh_model_get_info(model.get(), &info);
  printf("%s: all hashes match, %.2f MB in %.2f s\n", options.file.c_str(),
         double(info.file_bytes) / 1e6, now() - begin);
  return kDone;
}

int tokenizeCommand(int count, char **words) {
  ModelOptions options;
  std::string text, file;
  bool hasText = false, json = false, noBos = false, noSpecial = false;
  Arguments arguments("izh-rt tokenize", "Prints the ids of a text.");
  declareModel(arguments, options);
  arguments.text("-p,--prompt", "TEXT", &text, &hasText, "the text");
  arguments.text("-f,--file", "FILE", &file, "a file with the text; - for input");
  arguments.flag("--no-bos", &noBos, "no beginning-of-text token, whatever the model says");
  arguments.flag("--no-special", &noSpecial, "control tokens are plain text");
  arguments.flag("--json", &json, "prints a JSON list of ids");
  int status;
  if (!arguments.parse(count, words, &status))
    return status;
  if (hasText == !file.empty())
    return arguments.misuse(hasText ? "-p and -f exclude each other"
                                    : "-p TEXT or -f FILE is missing");
  ModelPtr model = openModel(options, /*run=*/false);
  std::vector<int32_t> ids;
  if (!model || (!file.empty() && !readFile(file, &text)) ||
      !tokenizeText(model.get(), text, !noBos, !noSpecial, &ids))
    return kFailed;
  if (json) {
    printf("%s\n", jsonIds(ids).c_str());
    return kDone;
  }
  for (int32_t id : ids)
    printf("%8d  %s\n", id, jsonString(tokenBytes(model.get(), id, true)).c_str());
  return kDone;
}

} // namespace izh::rt
