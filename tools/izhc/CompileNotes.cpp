// One line each, on standard error.

#include "tools/izhc/CompileNotes.h"
#include "compiler/formats/Recipes.h"
#include "runtime/text/jinja/render.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

namespace izhc::tool {

void noteMissingParts(const CompileOptions &options, const CompileReport &report,
                      llvm::raw_ostream &out) {
  if (options.tokenizer.empty())
    out << llvm::formatv("izhc: warning: {0} has no tokenizer, so izh-rt takes ids and no text: "
                         "run, chat, tokenize and perplexity will refuse it\n",
                         options.model);
  else if (report.facts.chatTemplate.empty())
    out << llvm::formatv("izhc: warning: {0} has no chat template: izh-rt chat and render will "
                         "refuse it\n",
                         options.model);
}

void noteShorterContext(const CompileOptions &options, const CompileReport &report,
                        llvm::raw_ostream &out) {
  if (options.context == 0 && report.facts.context < report.longest)
    out << llvm::formatv("izhc: {0} is compiled for texts of up to {1} tokens; with --context=N, "
                         "up to {2}, it takes its factors for longer ones\n",
                         options.model, report.facts.context, report.longest);
}

void noteVectors(const CheckedTokenizer &tokenizer, llvm::raw_ostream &out) {
  if (!tokenizer.vectors.empty())
    out << llvm::formatv("izhc: the tokenizer gives the ids of all {0} texts in {1}\n",
                         tokenizer.texts, llvm::join(tokenizer.vectors, " and "));
}

void noteTemplate(const CompileOptions &options, const CompileReport &report,
                  llvm::raw_ostream &out) {
  const std::string &source = report.facts.chatTemplate;
  if (source.empty() || source.size() > UINT32_MAX)
    return;
  constexpr llvm::StringLiteral hello(R"({"messages": [{"role": "user", "content": "Hello"}]})");
  izh::jinja::RenderInput input = {{source.data(), source.size()}, {hello.data(), hello.size()}};
  input.bos_token = input.eos_token = {"", 0};
  izh::Array<char> prompt;
  izh_error error = {};
  if (izh::jinja::render(input, {}, &prompt, &error) != IZH_OK)
    out << llvm::formatv("izhc: warning: the chat template of {0} makes no prompt of a message "
                         "'Hello', and izh-rt chat will stop there: {1}\n",
                         options.model, error.message);
}

// Whether the matrix got a format only because one of the recipe's doesn't
// divide its rows.
static bool isReplaced(const Recipe &recipe, const emit::Weight &weight) {
  for (llvm::StringRef name : {recipe.base, recipe.better, recipe.output}) {
    const FormatSpec *wanted = name.empty() ? nullptr : findFormat(name);
    if (wanted && weight.cols % wanted->blockWeights != 0 &&
        weight.format == fittingFormat(*wanted, weight.cols))
      return true;
  }
  return false;
}

void noteOtherFormats(const CompileOptions &options, const CompileReport &report,
                      llvm::raw_ostream &out) {
  const Recipe *recipe = findRecipe(llvm::StringRef(options.quantize.recipe).lower());
  if (!recipe)
    return;
  unsigned replaced = 0;
  double bits = 0, weights = 0;
  for (const emit::Weight &weight : report.plan.weights) {
    replaced += isReplaced(*recipe, weight);
    double size = double(weight.rows) * double(weight.cols) * double(weight.count);
    weights += size;
    bits += size * 8 * weight.format->blockBytes / weight.format->blockWeights;
  }
  if (replaced)
    out << llvm::formatv("izhc: warning: the rows of {0} of {1} matrices are no whole blocks of a "
                         "type that {2} has for them, so they got larger types: {3:f2} bits a "
                         "weight in all\n",
                         replaced, report.plan.weights.size(), recipe->name, bits / weights);
}

void noteEncodedTwice(const CompileOptions &options, const CompileReport &report,
                      llvm::raw_ostream &out) {
  if (report.encodedTwice)
    out << llvm::formatv("izhc: warning: {0} of the matrices of {1} that are encoded anew were "
                         "quantized before, and both errors add up: start from float weights where "
                         "there are some ('izhc check' tells what it costs)\n",
                         report.encodedTwice, options.model);
}

} // namespace izhc::tool
