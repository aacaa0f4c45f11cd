// The options of all commands that generate text.

#pragma once

#include "tools/izh-rt/Arguments.h"
#include "tools/izh-rt/Generation.h"

namespace izh::rt {

struct SamplingArguments {
  GenerationOptions generation;
  std::string seed;
  uint64_t topK = 0, repeatWindow = 64;
  bool hasSeed = false;
};

// Declares them with their defaults.
void declareSampling(Arguments &arguments, SamplingArguments &options);
// Checks what the parser can't; fills in the rest. Returns a sentence or "".
std::string completeSampling(SamplingArguments &options);

// Writes to standard output, whole; false if nobody reads it.
bool writeAll(const std::string &text);

} // namespace izh::rt
