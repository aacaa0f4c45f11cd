// Which cores this process may use, and how many of them at a time.

#pragma once

#include <cstdint>

namespace izh {

constexpr uint32_t kMaxCores = 1024;

struct Cores {
  uint32_t count;           // of ids, at least 1
  uint32_t physical;        // the first so many are one a physical core
  uint32_t quota;           // cores' worth of time that control groups allow, at least 1
  uint16_t ids[kMaxCores];  // the system's numbers; empty of sense if `known` is false
  bool known;               // the system told its cores
};

// Never fails: what the system doesn't tell is taken to be one core, no quota.
void usable_cores(Cores* out);

// Threads that do no harm: one a physical core, not more than the quota.
uint32_t default_threads(const Cores& cores);

}  // namespace izh
