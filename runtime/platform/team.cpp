// The team. One 64-bit word, `claim`, says which phase runs (high half, the
// epoch) and how many of its pieces nobody has taken yet (low half, plus
// kBias so that taking from an exhausted phase cannot borrow from the epoch).
// A piece is taken by decrementing the word. Whoever takes one knows that the
// phase cannot end before it is done, so the tables of the run may be read;
// whoever finds none left reads nothing, and may arrive arbitrarily late.
// The thread that finishes the last piece of a phase starts the next one.
//
// What remains is a thread that the system holds up while it has a piece. Its
// time slice would end there sooner or later, so a thread offers its core to
// others by itself, at moments when it holds none: on an idle core that costs
// a system call a millisecond; beside a busy loop the loop runs while the rest
// of the team goes on.

#include "runtime/platform/team.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "runtime/base/array.h"
#include "runtime/base/status.h"
#include "runtime/platform/clock.h"
#include "runtime/platform/float_mode.h"
#include "runtime/platform/futex.h"

namespace izh {
namespace {

constexpr uint64_t kBias = 1u << 31;
// About 100 us on a current core: longer than a phase takes when no thread is
// held up, shorter than what a sleep and a wake would be missed for.
constexpr uint32_t kSpins = 2000;
// With more threads than cores, spinning takes time from those that work.
constexpr uint32_t kSpinsCrowded = 20;
// Most waits end within these.
constexpr uint32_t kSpinsBeforeOffer = 8;
// Less than any system's time slice. Measured on two cores of a Zen 4 (Linux
// 6.18, 2026-11) with a busy loop on one, phases that read 84 MB: 39 % of the
// undisturbed rate without offers, 68 % every 0.5 ms, 56 % every 2 ms.
constexpr uint64_t kOfferEveryNs = 1000000;

// When a thread last gave others a chance to run on its core.
struct Turn {
  uint64_t since = 0;
};

bool offer_due(const Turn& turn) { return clock_ns() - turn.since > kOfferEveryNs; }

// The caller holds no piece.
void offer_core(Turn* turn) {
  sched_yield();
  turn->since = clock_ns();
}

uint64_t word(uint32_t epoch, uint32_t left) {
  return (static_cast<uint64_t>(epoch) << 32) | (kBias + left);
}
uint32_t epoch_of(uint64_t claim) { return static_cast<uint32_t>(claim >> 32); }
// 0 also where threads took more than there was.
uint32_t left_of(uint64_t claim) {
  const uint32_t low = static_cast<uint32_t>(claim);
  return low > kBias ? static_cast<uint32_t>(low - kBias) : 0;
}

}  // namespace

// Each of the words that all threads write has a cache line of its own; 128,
// because lines are fetched in pairs.
struct Team {
  alignas(128) std::atomic<uint64_t> claim{kBias};
  alignas(128) std::atomic<uint32_t> done{0};  // pieces of this epoch
  alignas(128) std::atomic<uint32_t> sleepers{0};
  alignas(128) std::atomic<bool> stop{false};
  // Of the current run; read only by holders of a piece and by the caller.
  Phases phases{};
  uint32_t first_epoch = 0;
  Turn caller;  // of team_run's thread
  uint32_t spins = kSpins;
  uint32_t threads = 1;
  void* memory = nullptr;
  Array<pthread_t> workers;
};

namespace {

// The futex is the half of `claim` that holds the epoch.
const uint32_t* epoch_word(const Team* team) {
  static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ && sizeof(team->claim) == 8);
  return reinterpret_cast<const uint32_t*>(&team->claim) + 1;
}

void publish(Team* team, uint64_t claim) {
  // Sequentially consistent with the sleeper's count and check: either it sees
  // the new epoch or this sees the sleeper.
  team->claim.store(claim, std::memory_order_seq_cst);
  if (team->sleepers.load(std::memory_order_seq_cst) != 0) futex_wake_all(epoch_word(team));
}

// Returns a claim word of another epoch than `epoch`, or of the same with
// pieces left.
uint64_t wait_for_work(Team* team, uint32_t epoch, Turn* turn) {
  uint64_t claim = team->claim.load(std::memory_order_acquire);
  for (uint32_t spin = 0; spin < team->spins; ++spin) {
    if (epoch_of(claim) != epoch || left_of(claim) != 0) return claim;
    if (spin == kSpinsBeforeOffer && offer_due(*turn)) offer_core(turn);
    spin_pause();
    claim = team->claim.load(std::memory_order_acquire);
  }
  team->sleepers.fetch_add(1, std::memory_order_seq_cst);
  for (;;) {
    claim = team->claim.load(std::memory_order_seq_cst);
    if (epoch_of(claim) != epoch || left_of(claim) != 0) break;
    futex_wait(epoch_word(team), epoch);
  }
  team->sleepers.fetch_sub(1, std::memory_order_relaxed);
  turn->since = clock_ns();
  return claim;
}

// Starts the first phase from `*phase` on that has pieces, and takes its first
// `taken` pieces (0 or 1) for the caller; false if there is none and the run
// has ended. Then, or if none is taken, nothing of the run may be read any
// more: the next one may have begun.
bool start_phase(Team* team, uint32_t* phase, uint32_t taken) {
  const Phases& run = team->phases;
  while (*phase < run.count && run.pieces[*phase] == 0) ++*phase;
  const bool found = *phase < run.count;
  const uint32_t left = found ? run.pieces[*phase] - taken : 0;
  team->done.store(0, std::memory_order_relaxed);
  publish(team, word(team->first_epoch + *phase, left));
  return found;
}

// Runs pieces of `phase`, one of which (`piece`) this thread has taken, until
// none is left. Returns true if this thread finished the phase.
bool work_phase(Team* team, uint32_t phase, uint32_t piece) {
  const Phases run = team->phases;
  const uint32_t pieces = run.pieces[phase];
  uint32_t finished = 0;
  for (;;) {
    run.work(run.argument, phase, piece);
    ++finished;
    // The phase cannot end before this thread reports, so the epoch stays.
    if (left_of(team->claim.load(std::memory_order_relaxed)) == 0) break;
    const uint32_t left = left_of(team->claim.fetch_sub(1, std::memory_order_acq_rel));
    if (left == 0) break;
    piece = pieces - left;
  }
  return team->done.fetch_add(finished, std::memory_order_acq_rel) + finished == pieces;
}

// Runs `piece` of `phase` and what follows as long as this thread is the one
// that finishes phases. True if it ended the run.
bool work_on(Team* team, uint32_t phase, uint32_t piece, Turn* turn) {
  while (work_phase(team, phase, piece)) {
    ++phase;
    // Whoever finished a phase has what a next one of one piece is made of;
    // the others needn't hear of it.
    for (; phase < team->phases.count && team->phases.pieces[phase] <= 1; ++phase) {
      if (team->phases.pieces[phase] == 1) team->phases.work(team->phases.argument, phase, 0);
    }
    const bool offer = offer_due(*turn);
    if (!start_phase(team, &phase, offer ? 0 : 1)) return true;
    if (offer) {
      offer_core(turn);
      return false;
    }
    piece = 0;
  }
  return false;
}

// Tries to take a piece of what `claim` showed, and works on it. True if this
// thread ended the run; `*epoch` becomes the epoch that was seen last.
bool take(Team* team, uint64_t claim, uint32_t* epoch, Turn* turn) {
  *epoch = epoch_of(claim);
  if (left_of(claim) == 0) return false;
  claim = team->claim.fetch_sub(1, std::memory_order_acq_rel);
  *epoch = epoch_of(claim);
  const uint32_t left = left_of(claim);
  if (left == 0) return false;
  const uint32_t phase = *epoch - team->first_epoch;
  return work_on(team, phase, team->phases.pieces[phase] - left, turn);
}

void* worker_main(void* argument) {
  Team* team = static_cast<Team*>(argument);
  float_mode_default();
  uint32_t epoch = 0;
  Turn turn;
  for (;;) {
    const uint64_t claim = wait_for_work(team, epoch, &turn);
    take(team, claim, &epoch, &turn);
    // After, not before: a thread that is late may meet the last epoch only
    // while it tries to take a piece, and would wait for the next one. Whoever
    // has seen the last epoch sees this, too.
    if (team->stop.load(std::memory_order_acquire)) return nullptr;
  }
}

void run_alone(const Phases& phases) {
  for (uint32_t phase = 0; phase < phases.count; ++phase) {
    for (uint32_t piece = 0; piece < phases.pieces[phase]; ++piece) {
      phases.work(phases.argument, phase, piece);
    }
  }
}

// Best effort, once: whoever changes affinities later has the last word. The
// choice among physical cores is the system's, which knows what else is
// running: a thread tied to one core could not leave it when another program
// came there.
void keep_on(pthread_t thread, const Cores& cores, uint32_t threads) {
  if (!cores.known || threads > cores.count) return;
  unsigned long mask[8192 / 8 / sizeof(unsigned long)] = {};
  constexpr size_t kWord = 8 * sizeof(unsigned long);
  const uint32_t allowed = threads <= cores.physical ? cores.physical : cores.count;
  for (uint32_t i = 0; i < allowed; ++i) {
    mask[cores.ids[i] / kWord] |= 1ul << (cores.ids[i] % kWord);
  }
  (void)pthread_setaffinity_np(thread, sizeof(mask), reinterpret_cast<cpu_set_t*>(mask));
}

// Signals go to the program's own threads.
izh_status start_workers(Team* team, const Cores& cores, izh_error* error) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  izh_status status = IZH_OK;
  for (uint32_t index = 1; index < team->threads; ++index) {
    pthread_t thread;
    const int reason = pthread_create(&thread, nullptr, worker_main, team);
    if (reason != 0) {
      status =
          fail(error, IZH_OUT_OF_MEMORY, "cannot start thread %u of %u: %s; ask for fewer threads",
               index + 1, team->threads, strerror(reason));
      break;
    }
    // Room was reserved before.
    (void)team->workers.push(thread);
    keep_on(thread, cores, team->threads);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return status;
}

}  // namespace

izh_status team_create(uint32_t threads, const Cores& cores, Team** out, izh_error* error) {
  *out = nullptr;
  if (threads < 1 || threads > kMaxCores) {
    return fail(error, IZH_LIMIT, "%u threads were asked for, but 1 to %u are possible", threads,
                kMaxCores);
  }
  void* memory = heap_alloc(sizeof(Team) + alignof(Team));
  if (!memory) return fail(error, IZH_OUT_OF_MEMORY, "no memory is left for the threads");
  const uintptr_t aligned =
      (reinterpret_cast<uintptr_t>(memory) + alignof(Team) - 1) & ~(alignof(Team) - 1);
  Team* team = ::new (reinterpret_cast<void*>(aligned)) Team();
  team->memory = memory;
  team->threads = threads;
  const uint32_t room = cores.count < cores.quota ? cores.count : cores.quota;
  if (threads > room) team->spins = kSpinsCrowded;
  izh_status status = IZH_OK;
  if (!team->workers.reserve(threads)) {
    status = fail(error, IZH_OUT_OF_MEMORY, "no memory is left for the threads");
  } else {
    status = start_workers(team, cores, error);
  }
  if (status != IZH_OK) {
    team_destroy(team);
    return status;
  }
  *out = team;
  return IZH_OK;
}

void team_destroy(Team* team) {
  if (!team) return;
  team->stop.store(true, std::memory_order_release);
  publish(team, word(epoch_of(team->claim.load()) + 1, 0));
  for (pthread_t worker : team->workers) pthread_join(worker, nullptr);
  void* memory = team->memory;
  team->~Team();
  heap_free(memory);
}

uint32_t team_threads(const Team* team) { return team->threads; }

void team_run(Team* team, const Phases& phases) {
  const uint64_t before = float_mode_default();
  if (team->threads == 1) {
    run_alone(phases);
    float_mode_restore(before);
    return;
  }
  team->phases = phases;
  // The idle epoch has no pieces; the run's epochs follow it, its last one is idle again.
  team->first_epoch = epoch_of(team->claim.load(std::memory_order_relaxed)) + 1;
  const uint32_t last = team->first_epoch + phases.count;
  uint32_t phase = 0;
  Turn* turn = &team->caller;
  bool ended = !start_phase(team, &phase, 1) || work_on(team, phase, 0, turn);
  uint32_t epoch = team->first_epoch + phase;
  while (!ended && epoch != last) {
    ended = take(team, wait_for_work(team, epoch, turn), &epoch, turn);
  }
  float_mode_restore(before);
}

}  // namespace izh
