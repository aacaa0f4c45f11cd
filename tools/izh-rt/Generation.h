// The loop that makes tokens of a prompt, and the text that comes out of it.

#pragma once

#include "tools/izh-rt/Model.h"
#include "tools/izh-rt/StopFinder.h"

#include <functional>

namespace izh::rt {

// Turns tokens into whole UTF-8 characters, and these into what may be shown.
class TextStream {
public:
  TextStream(const izh_model *model, std::vector<std::string> stops)
      : model(model), finder(std::move(stops)) {}

  // Appends a token; as StopFinder::feed.
  std::string feed(int32_t id, bool *stopped);
  // What was held back, at the end of the text.
  std::string finish();

private:
  const izh_model *model;
  StopFinder finder;
  izh_utf8_stream characters = {};
};

struct GenerationOptions {
  uint64_t tokens = 256;
  std::vector<std::string> stops;
  bool ignoreEnd = false; // tokens that end a text don't
  izh_sampler_options sampling = {};
};

struct Generation {
  std::vector<int32_t> tokens; // the end token included
  std::string stop;            // eos, length, context, string or interrupt
  double promptSeconds = 0;
  double generationSeconds = 0; // of all tokens but the first
  double firstTokenTime = 0;    // on the clock of now(); 0: there was none
};

// Runs `prompt` and then generates; `show` gets pieces of text and returns
// false when nobody reads them any more. `interrupted` is looked at between
// steps. Returns false after a message.
bool generate(const izh_model *model, izh_context *context, const std::vector<int32_t> &prompt,
              const GenerationOptions &options, const volatile bool &interrupted,
              const std::function<bool(const std::string &)> &show, Generation *result);

} // namespace izh::rt
