// What a NAME_fuzz.cpp defines. An input must end in success or in an error
// that the fuzzer takes note of; anything else (a crash, a sanitizer's report,
// more than 2 s or 1 GB) is a finding.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Valid inputs, which standalone.cpp truncates and mutates.
std::vector<std::vector<uint8_t>> fuzzSeeds();

// Optional: makes checksums of a mutated input right again, so that what lies
// behind them is reached. Called for every second mutation.
__attribute__((weak)) void fuzzRepair(std::vector<uint8_t> &input);
