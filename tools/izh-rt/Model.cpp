// Opening of models, reading of inputs, small statistics.

#include "tools/izh-rt/Model.h"

#include "runtime/platform/device.h"
#include "runtime/platform/input_text.h"
#include "runtime/platform/process.h"
#include "tools/izh-rt/Json.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <sys/stat.h>
#include <unistd.h>

namespace izh::rt {

void declareModel(Arguments &arguments, ModelOptions &options) {
  arguments.positional("FILE", &options.file, "an .izh file");
  arguments.text("--variant", "NAME", &options.variant,
                 "force one of the file's variants (the best that runs here)");
  arguments.text("--require", "FEATURES", &options.require,
                 "fail unless the chosen variant uses these CPU features, separated by commas");
  arguments.choice("--load", "map|read", &options.load,
                   "map the file, or read it whole into huge pages (map)");
  static const std::string device = std::string("where to run: ") + device_kinds() + " (cpu)";
  arguments.text("--device", "KIND", &options.device, device.c_str());
}

void declareRun(Arguments &arguments, ModelOptions &options, const char *usualContext) {
  declareModel(arguments, options);
  arguments.integer("--threads,-t", "N", &options.threads, 1, 1024,
                    "threads (one a usable physical core)");
  arguments.integer("--ctx,-c", "N", &options.contextTokens, 1, 1u << 30,
                    ("tokens of the cache (" + std::string(usualContext) + ")").c_str());
}

int failed(const std::string &sentence) {
  fflush(stdout);
  fprintf(stderr, "izh-rt: %s\n", sentence.c_str());
  return kFailed;
}

int failed(const izh_error &error) { return failed(std::string(error.message)); }

int cannotPrint() {
  // A reader that left early (`| head`) has what it wanted.
  if (errno == EPIPE)
    return kDone;
  std::string reason = errno ? std::string(": ") + strerror(errno) : "";
  return failed("cannot write to standard output" + reason);
}

// What people give instead of an artifact, which the runtime would only call
// damaged. "" for anything else.
static std::string hintFor(const std::string &path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0)
    return "";
  std::string make = ": compile it with 'izhc compile " + path + "' and give the .izh file";
  if (S_ISDIR(info.st_mode))
    return "'" + path + "' is a folder, not an .izh file" + make;
  if (path.ends_with(".gguf"))
    return "'" + path + "' is a model that is not compiled" + make;
  if (!path.ends_with(".safetensors"))
    return "";
  size_t slash = path.rfind('/');
  return "'" + path + "' holds weights that are not compiled: compile the folder that it is in " +
         "with 'izhc compile " + (slash == std::string::npos ? "." : path.substr(0, slash)) +
         "' and give the .izh file";
}

static void warnOfContext(const izh_model *model, uint64_t wanted) {
  izh_model_info info;
  izh_model_get_info(model, &info);
  if (info.context && wanted > info.context)
    fprintf(stderr,
            "izh-rt: warning: --ctx is %llu, but the model was trained or compiled for %u tokens: "
            "what comes after them is likely to be poor\n",
            static_cast<unsigned long long>(wanted), info.context);
}

ModelPtr openModel(const ModelOptions &options, bool run) {
  if (!options.device.empty() && !device_known(options.device.c_str())) {
    failed("--device is '" + options.device + "', but it can be " + device_kinds());
    return nullptr;
  }
  // The runtime reads the variable when it looks for devices.
  if (!options.device.empty())
    setenv("IZH_DEVICE", options.device.c_str(), 1);
  izh_model_options modelOptions = {};
  if (!options.variant.empty())
    modelOptions.variant = options.variant.c_str();
  if (!options.require.empty())
    modelOptions.require = options.require.c_str();
  modelOptions.load = options.load == "read" ? IZH_LOAD_READ : IZH_LOAD_MAP;
  modelOptions.no_run = !run;
  process_reads(options.file.c_str());
  izh_model *model = nullptr;
  izh_error error = {};
  if (izh_model_open(options.file.c_str(), &modelOptions, &model, &error) != IZH_OK) {
    std::string hint = hintFor(options.file);
    failed(hint.empty() ? error.message : hint);
    return nullptr;
  }
  warnOfContext(model, options.contextTokens);
  return ModelPtr(model);
}

// A mapped file that doesn't fit is no error, but the user has to know why it is slow.
static void warnOfMemory(const izh_model *model, const izh_context_options &options) {
  izh_memory memory;
  if (izh_context_memory(model, &options, &memory, nullptr) != IZH_OK || !memory.file_mapped ||
      memory.peak <= memory.limit)
    return;
  fprintf(stderr,
          "izh-rt: warning: a run takes up to %.0f MB, but this process may use %.0f MB: parts of "
          "the file will be read from the disk again and again; close other programs, raise the "
          "limit or compile a smaller model\n",
          double(memory.peak) / 1e6, double(memory.limit) / 1e6);
}

ContextPtr createContext(const izh_model *model, uint64_t threads, uint64_t tokens,
                         uint32_t sequences) {
  izh_context_options options = {};
  options.threads = static_cast<uint32_t>(threads);
  options.tokens = static_cast<uint32_t>(std::min<uint64_t>(tokens, UINT32_MAX));
  options.sequences = sequences;
  izh_context *context = nullptr;
  izh_error error = {};
  warnOfMemory(model, options);
  if (izh_context_create(model, &options, &context, &error) != IZH_OK) {
    failed(error);
    return nullptr;
  }
  return ContextPtr(context);
}

bool readFile(const std::string &path, std::string *out) {
  Array<char> text;
  izh_error error = {};
  if (read_input(path.c_str(), &text, &error) != IZH_OK) {
    failed(error);
    return false;
  }
  out->assign(text.data(), text.size());
  return true;
}

bool readIds(const std::string &path, std::vector<int32_t> *ids) {
  std::string json, error;
  if (!readFile(path, &json))
    return false;
  if (!parseIds(json, ids, &error)) {
    failed("'" + path + "' is no JSON list of token ids: " + error);
    return false;
  }
  if (ids->empty()) {
    failed("'" + path + "' holds no token ids, but at least one is needed");
    return false;
  }
  return true;
}

bool tokenizeText(const izh_model *model, const std::string &text, bool addBos, bool parseSpecial,
                  std::vector<int32_t> *ids) {
  izh_tokenize_options options = {addBos, parseSpecial};
  izh_error error = {};
  // Few texts have more tokens than bytes and a few.
  ids->resize(text.size() + 16);
  for (;;) {
    size_t count = 0;
    if (izh_tokenize(model, text.data(), text.size(), &options, ids->data(), ids->size(), &count,
                     &error) != IZH_OK) {
      failed(error);
      return false;
    }
    bool whole = count <= ids->size();
    ids->resize(count);
    if (whole)
      return true;
  }
}

static bool checkUsable(bool usable, uint64_t token) {
  if (!usable)
    failed("the logits after token " + std::to_string(token) +
           " are not finite numbers: weights of the model are damaged, or were before it was "
           "compiled; 'izh-rt verify FILE' tells which");
  return usable;
}

bool checkLogits(const float *logits, size_t count, uint64_t token) {
  // Not a number fails every comparison. Minus infinity is a token that is ruled out.
  bool usable = true;
  for (size_t i = 0; i < count; ++i)
    usable &= logits[i] < INFINITY;
  return checkUsable(usable, token);
}

bool checkChoice(int32_t best, uint64_t token) { return checkUsable(best >= 0, token); }

std::string tokenBytes(const izh_model *model, int32_t id, bool special) {
  std::string bytes(64, '\0');
  for (;;) {
    size_t count = 0;
    if (izh_token_bytes(model, id, special, bytes.data(), bytes.size(), &count, nullptr) != IZH_OK)
      return "";
    bool whole = count <= bytes.size();
    bytes.resize(count);
    if (whole)
      return bytes;
  }
}

double now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

double median(std::vector<double> values) {
  if (values.empty())
    return NAN;
  std::sort(values.begin(), values.end());
  size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double deviation(const std::vector<double> &values) {
  if (values.size() < 2)
    return 0;
  double mean = 0, squares = 0;
  for (double value : values)
    mean += value / double(values.size());
  for (double value : values)
    squares += (value - mean) * (value - mean);
  return std::sqrt(squares / double(values.size() - 1));
}

} // namespace izh::rt
