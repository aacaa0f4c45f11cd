// What all commands that run a model share: the options, an opened model with
// its context, and how failures are told.

#pragma once

#include "runtime/include/izh/izh.h"
#include "tools/izh-rt/Arguments.h"

#include <memory>
#include <string>
#include <vector>

namespace izh::rt {

struct ModelOptions {
  std::string file, variant, require, device, load;
  uint64_t threads = 0;       // 0: the runtime's choice
  uint64_t contextTokens = 0; // 0: the command's choice
};

// Declares FILE and the options of all commands that open a model.
void declareModel(Arguments &arguments, ModelOptions &options);
// Also --threads and --ctx, for those that run it. `usualContext` tells in the
// help what the latter is where it is not given.
void declareRun(Arguments &arguments, ModelOptions &options, const char *usualContext);

struct Closer {
  void operator()(izh_model *model) const { izh_model_close(model); }
  void operator()(izh_context *context) const { izh_context_destroy(context); }
  void operator()(izh_sampler *sampler) const { izh_sampler_destroy(sampler); }
};
using ModelPtr = std::unique_ptr<izh_model, Closer>;
using ContextPtr = std::unique_ptr<izh_context, Closer>;
using SamplerPtr = std::unique_ptr<izh_sampler, Closer>;

// Prints "izh-rt: SENTENCE" and returns kFailed.
int failed(const std::string &sentence);
int failed(const izh_error &error);
// The same about standard output, with the reason in errno (0: unknown).
int cannotPrint();

// nullptr after a message. Where it isn't to run, it need have no variant for
// this machine.
ModelPtr openModel(const ModelOptions &options, bool run = true);
ContextPtr createContext(const izh_model *model, uint64_t threads, uint64_t tokens,
                         uint32_t sequences);

// The whole of a file, or of standard input for "-". False after a message.
bool readFile(const std::string &path, std::string *out);
// The ids of a JSON list in a file. False after a message.
bool readIds(const std::string &path, std::vector<int32_t> *ids);
// The ids of a text. False after a message.
bool tokenizeText(const izh_model *model, const std::string &text, bool addBos, bool parseSpecial,
                  std::vector<int32_t> *ids);
// Whether a row of logits can be chosen from; after a message, where it can't
// be, as weights that are no numbers make it. `token` is the position.
bool checkLogits(const float *logits, size_t count, uint64_t token);
// The same of what izh_context_run_best found in the row.
bool checkChoice(int32_t best, uint64_t token);
// Bytes of a token; empty where it has none.
std::string tokenBytes(const izh_model *model, int32_t id, bool special);

// Seconds since some fixed moment.
double now();
double median(std::vector<double> values);
double deviation(const std::vector<double> &values);

} // namespace izh::rt
