// Options of sampling, and the stream that text goes to.

#include "tools/izh-rt/Sampling.h"

#include <cerrno>
#include <ctime>
#include <sys/random.h>
#include <unistd.h>

namespace izh::rt {

static uint64_t randomSeed() {
  uint64_t seed = 0;
  if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
    seed = static_cast<uint64_t>(time(nullptr));
  // Short enough to type it again.
  return seed % 1000000000;
}

bool writeAll(const std::string &text) {
  size_t done = 0;
  while (done < text.size()) {
    ssize_t count = write(STDOUT_FILENO, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return false;
    done += size_t(count);
  }
  return true;
}

void declareSampling(Arguments &arguments, SamplingArguments &options) {
  izh_sampler_options &sampling = options.generation.sampling;
  sampling.temperature = 0.8f;
  sampling.top_p = 1;
  sampling.repeat_penalty = 1;
  arguments.number("--temp", "T", &sampling.temperature, 0, 1000,
                   "temperature; 0 takes the likeliest token (0.8)");
  arguments.integer("--top-k", "K", &options.topK, 0, UINT32_MAX,
                    "choose among the K likeliest; 0: all (0)");
  arguments.number("--top-p", "P", &sampling.top_p, 1e-6f, 1,
                   "choose among the likeliest that have probability P together; 1: all (1)");
  arguments.number("--min-p", "P", &sampling.min_p, 0, 1,
                   "drop tokens with less than P times the best one's probability; 0: none (0)");
  arguments.number("--repeat-penalty", "X", &sampling.repeat_penalty, 0.01f, 100,
                   "above 1, makes tokens of the window less likely; 1: off (1)");
  arguments.integer("--repeat-window", "N", &options.repeatWindow, 0, 1u << 20,
                    "how many last tokens the penalty looks at (64)");
  arguments.text("--seed", "N", &options.seed, &options.hasSeed,
                 "of the random choice (a new one each run; the last line tells it)");
  arguments.texts("--stop", "STRING", &options.generation.stops,
                  "ends the text before STRING; may be given several times");
}

std::string completeSampling(SamplingArguments &options) {
  izh_sampler_options &sampling = options.generation.sampling;
  sampling.top_k = static_cast<uint32_t>(options.topK);
  sampling.repeat_window = static_cast<uint32_t>(options.repeatWindow);
  sampling.seed = randomSeed();
  if (options.hasSeed && !parseInteger(options.seed, 0, UINT64_MAX, &sampling.seed))
    return "--seed takes an integer from 0 on, not '" + options.seed + "'";
  for (const std::string &stop : options.generation.stops)
    if (stop.empty())
      return "--stop needs at least one character";
  return "";
}

} // namespace izh::rt
