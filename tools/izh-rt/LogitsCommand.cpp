// `izh-rt logits`: the door for numerical tests.

#include "tools/izh-rt/Commands.h"
#include "tools/izh-rt/Model.h"
#include "tools/izh-rt/NpyWriter.h"

#include <algorithm>
#include <cstdio>
#include <sys/stat.h>

namespace izh::rt {
namespace {

struct LogitsOptions {
  ModelOptions model;
  std::string tokensFile, besideFile, output;
  uint64_t chunk = 0;
};

// Feeds two sequences piece by piece; the rows of the first one are written.
class Runner {
public:
  Runner(izh_context *context, uint32_t vocabulary, size_t piece)
      : context(context), vocabulary(vocabulary), piece(piece), logits(size_t(vocabulary) * piece) {
  }

  bool run(const std::vector<int32_t> &tokens, const std::vector<int32_t> &beside, NpyWriter &out) {
    izh_sequence *first = nullptr, *second = nullptr;
    izh_error error = {};
    if (izh_sequence_create(context, &first, &error) != IZH_OK ||
        (!beside.empty() && izh_sequence_create(context, &second, &error) != IZH_OK)) {
      failed(error);
      return false;
    }
    size_t besideDone = 0;
    for (size_t done = 0; done < tokens.size();) {
      size_t count = std::min(piece, tokens.size() - done);
      size_t besideCount = std::min(piece, beside.size() - besideDone);
      izh_input main = {first, tokens.data() + done, uint32_t(count), uint32_t(count)};
      izh_input other = {second, beside.data() + besideDone, uint32_t(besideCount), 0};
      if (!step(main, other) || !out.write(logits.data(), count * vocabulary))
        return false;
      done += count;
      besideDone += besideCount;
    }
    return true;
  }

private:
  bool step(const izh_input &main, const izh_input &other) {
    izh_input inputs[2] = {main, other};
    uint32_t count = other.count ? 2 : 1;
    // Now one sequence comes first in a step, now the other.
    if (count == 2 && swapped)
      std::swap(inputs[0], inputs[1]);
    swapped = !swapped;
    izh_error error = {};
    if (izh_context_run(context, inputs, count, logits.data(), &error) == IZH_OK)
      return true;
    failed(error);
    return false;
  }

  izh_context *context;
  size_t vocabulary, piece;
  std::vector<float> logits;
  bool swapped = false;
};

// The name of an input that `options.output` would destroy, or "".
std::string endangered(const LogitsOptions &options) {
  struct stat out, in;
  if (stat(options.output.c_str(), &out) != 0)
    return "";
  for (const std::string *input : {&options.model.file, &options.tokensFile, &options.besideFile})
    if (S_ISREG(out.st_mode) && stat(input->c_str(), &in) == 0 && in.st_dev == out.st_dev &&
        in.st_ino == out.st_ino)
      return *input;
  return "";
}

} // namespace

int logitsCommand(int count, char **words) {
  LogitsOptions options;
  Arguments arguments("izh-rt logits",
                      "Writes the logits of given tokens: float32, tokens x vocabulary.");
  declareRun(arguments, options.model, "as many as there are ids");
  arguments.text("--tokens", "IDS.json", &options.tokensFile, "a JSON list of token ids");
  arguments.text("-o,--output", "OUT.npy", &options.output, "the file to write");
  arguments.integer("--chunk", "N", &options.chunk, 1, 1u << 30,
                    "tokens given to the model at a time (as many as a step takes)");
  arguments.text("--beside", "IDS.json", &options.besideFile,
                 "a second sequence that runs in the same steps; its logits are not written");
  int status;
  if (!arguments.parse(count, words, &status))
    return status;
  if (options.tokensFile.empty() || options.output.empty())
    return arguments.misuse("--tokens IDS.json and -o OUT.npy are needed");
  if (std::string input = endangered(options); !input.empty())
    return arguments.misuse("-o " + options.output + " is the same file as the input " + input);

  std::vector<int32_t> tokens, beside;
  if (!readIds(options.tokensFile, &tokens) ||
      (!options.besideFile.empty() && !readIds(options.besideFile, &beside)))
    return kFailed;
  ModelPtr model = openModel(options.model);
  if (!model)
    return kFailed;
  izh_model_info info;
  izh_model_get_info(model.get(), &info);
  uint64_t room = options.model.contextTokens;
  if (!room)
    room = tokens.size() + beside.size();
  ContextPtr context =
      createContext(model.get(), options.model.threads, room, beside.empty() ? 1 : 2);
  if (!context)
    return kFailed;
  size_t piece = std::max<uint32_t>(info.max_step_tokens, 1);
  if (options.chunk)
    piece = std::min<size_t>(piece, options.chunk);
  NpyWriter out;
  if (!out.open(options.output, tokens.size(), info.vocabulary) ||
      !Runner(context.get(), info.vocabulary, piece).run(tokens, beside, out) || !out.close())
    return kFailed;
  return kDone;
}

} // namespace izh::rt
