// What the machine's processor can run: features that both the processor and
// the operating system offer, as the bits of runtime/schema/cpu_features.def.

#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/include/izh/izh.h"

namespace izh {

// The name that variants use: "x86_64", "aarch64", or "unknown".
const char* cpu_arch();

// Asked once; tile permission is requested from the system where it is needed.
uint64_t cpu_features();

// The bits that have a name, of all machines.
uint64_t cpu_features_known();

// The name of feature `bit`, or NULL if this runtime knows none.
const char* cpu_feature_name(unsigned bit);

// The bit of the feature called `name` (`length` bytes), or -1.
int cpu_feature_bit(const char* name, size_t length);

// Writes the names of the bits set, separated by ", " and cut to `capacity`;
// bits without a name are written as "feature N".
void cpu_feature_list(uint64_t bits, char* out, size_t capacity);

}  // namespace izh
