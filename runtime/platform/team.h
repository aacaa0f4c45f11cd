// A team of persistent threads that runs phases one after the other. A phase
// is a number of pieces, each run once by some thread; the next phase starts
// when all pieces of the one before are finished. A phase waits for pieces,
// not for threads: a thread that the system holds up between two pieces
// delays nobody, and threads leave their core to others only there.

#pragma once

#include <cstdint>

#include "runtime/include/izh/izh.h"
#include "runtime/platform/cores.h"

namespace izh {

struct Team;

// What a run does. Everything pointed to stays as it is until the run ends.
struct Phases {
  const uint32_t* pieces;  // of each phase, at most kMaxPieces; 0: skipped
  uint32_t count;          // of phases, below 2^30
  void (*work)(void* argument, uint32_t phase, uint32_t piece);
  void* argument;
};

constexpr uint32_t kMaxPieces = 1u << 30;

// Starts `threads` - 1 threads (the caller of team_run is the other one), 1 to
// kMaxCores. They stay on `cores` where the system allows it.
[[nodiscard]] izh_status team_create(uint32_t threads, const Cores& cores, Team** out,
                                     izh_error* error);
// NULL is allowed. Not during a run.
void team_destroy(Team* team);

uint32_t team_threads(const Team* team);

// Runs all phases; from one thread at a time. Works in the default
// floating-point environment whatever the caller's is.
void team_run(Team* team, const Phases& phases);

}  // namespace izh
