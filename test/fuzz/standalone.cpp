// Runs a fuzzer without libFuzzer, the same way every time: each seed whole,
// at 200 lengths, and mutated.
//   NAME_mutations [--mutations N] [--seed S] [--only I] [FILE...]
// Files are seeds beside the fuzzer's own; --only repeats mutation I alone.

#include "test/fuzz/fuzz.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

using Bytes = std::vector<uint8_t>;

// Present in programs built with a sanitizer.
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*)());

static constexpr int kSecondsPerInput = 2;
static constexpr long kMaxKilobytes = 1 << 20;

//===----------------------------------------------------------------------===//
// Saying which input failed
//===----------------------------------------------------------------------===//

static char current[128] = "nothing";

static void printCurrent() {
  const char *parts[] = {"fuzz: the failing input was ", current, "\n"};
  for (const char *part : parts)
    if (write(STDERR_FILENO, part, std::strlen(part)) < 0)
      return;
}

static void onSignal(int number) {
  printCurrent();
  if (number == SIGPROF) {
    const char text[] = "fuzz: it took too long\n";
    if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
      _exit(1);
  }
  _exit(1);
}

static void watchForDeath() {
  std::signal(SIGPROF, onSignal);
  if (__sanitizer_set_death_callback) {
    __sanitizer_set_death_callback(printCurrent);
    return;
  }
  for (int number : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGTRAP})
    std::signal(number, onSignal);
}

//===----------------------------------------------------------------------===//
// One input
//===----------------------------------------------------------------------===//

// In time of the processor, so that a busy machine fails nothing.
static void startClock(int seconds) {
  itimerval limit = {};
  limit.it_value.tv_sec = seconds;
  setitimer(ITIMER_PROF, &limit, nullptr);
}

static void runOne(const Bytes &input) {
  // Of exactly this size, so that sanitizers see the first byte beyond it.
  Bytes exact(input.begin(), input.end());
  startClock(kSecondsPerInput);
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
  startClock(0);
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  if (usage.ru_maxrss > kMaxKilobytes) {
    printCurrent();
    std::fprintf(stderr, "fuzz: it took %ld KB of memory\n", usage.ru_maxrss);
    std::exit(1);
  }
}

//===----------------------------------------------------------------------===//
// Mutations
//===----------------------------------------------------------------------===//

using Random = std::mt19937_64;

static size_t below(Random &random, size_t limit) { return limit ? random() % limit : 0; }

// A number that counts and offsets don't expect.
static uint64_t extreme(Random &random, size_t fileSize) {
  const uint64_t values[] = {0,
                             1,
                             2,
                             7,
                             0x7f,
                             0x80,
                             0xff,
                             0xffff,
                             1u << 31,
                             0xffffffff,
                             1ull << 32,
                             1ull << 62,
                             INT64_MAX,
                             1ull << 63,
                             UINT64_MAX,
                             UINT64_MAX - 7,
                             fileSize,
                             fileSize - 1,
                             fileSize + 1,
                             fileSize / 2};
  return values[below(random, std::size(values))];
}

static void overwriteField(Random &random, Bytes &bytes) {
  const size_t sizes[] = {1, 2, 4, 8, 8, 8};
  size_t size = sizes[below(random, std::size(sizes))];
  if (bytes.size() < size)
    return;
  size_t at = below(random, bytes.size() - size + 1);
  uint64_t value = extreme(random, bytes.size());
  std::memcpy(bytes.data() + at, &value, size);
}

static void mutate(Random &random, Bytes &bytes) {
  if (bytes.empty())
    return;
  size_t at = below(random, bytes.size());
  size_t count = 1 + below(random, std::min<size_t>(bytes.size() - at, 64));
  switch (below(random, 8)) {
  case 0:
    bytes[at] ^= static_cast<uint8_t>(1u << below(random, 8));
    return;
  case 1:
  case 2:
    bytes[at] = static_cast<uint8_t>(random());
    return;
  case 3:
    bytes.erase(bytes.begin() + at, bytes.begin() + at + count);
    return;
  case 4: {
    Bytes part(bytes.begin() + at, bytes.begin() + at + count);
    bytes.insert(bytes.begin() + below(random, bytes.size()), part.begin(), part.end());
    return;
  }
  default:
    overwriteField(random, bytes);
  }
}

static void runMutation(const Bytes &seed, uint64_t randomSeed, uint64_t index) {
  // Each mutation has its own numbers, so that it can be repeated alone.
  Random random(randomSeed * 1000003 + index);
  Bytes bytes = seed;
  for (size_t i = 0, count = 1 + below(random, 4); i < count; ++i)
    mutate(random, bytes);
  if (fuzzRepair && index % 2 == 0)
    fuzzRepair(bytes);
  runOne(bytes);
}

//===----------------------------------------------------------------------===//
// Command line
//===----------------------------------------------------------------------===//

static void runTruncations(const Bytes &seed, size_t seedIndex) {
  constexpr size_t kLengths = 200;
  for (size_t i = 0; i <= kLengths; ++i) {
    size_t length = seed.size() * i / kLengths;
    std::snprintf(current, sizeof(current), "seed %zu cut to %zu bytes", seedIndex, length);
    runOne(Bytes(seed.begin(), seed.begin() + length));
  }
}

int main(int argc, char **argv) {
  uint64_t mutations = 2000, randomSeed = 1, first = 0;
  bool only = false;
  std::vector<Bytes> seeds = fuzzSeeds();
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    if (i + 1 < argc && argument == "--mutations") {
      mutations = std::strtoull(argv[++i], nullptr, 10);
    } else if (i + 1 < argc && argument == "--seed") {
      randomSeed = std::strtoull(argv[++i], nullptr, 10);
    } else if (i + 1 < argc && argument == "--only") {
      only = true;
      first = std::strtoull(argv[++i], nullptr, 10);
    } else {
      std::ifstream file(argument, std::ios::binary);
      if (!file) {
        std::fprintf(stderr, "cannot read %s\n", argv[i]);
        return 2;
      }
      seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
  }
  if (seeds.empty()) {
    std::fprintf(stderr, "fuzz: there is no seed\n");
    return 2;
  }
  watchForDeath();
  if (!only)
    for (size_t i = 0; i < seeds.size(); ++i)
      runTruncations(seeds[i], i);
  for (uint64_t i = first; only ? i == first : i < mutations; ++i) {
    std::snprintf(current, sizeof(current),
                  "mutation %llu of seed %zu (repeat with --seed %llu --only %llu)",
                  static_cast<unsigned long long>(i), static_cast<size_t>(i % seeds.size()),
                  static_cast<unsigned long long>(randomSeed), static_cast<unsigned long long>(i));
    runMutation(seeds[i % seeds.size()], randomSeed, i);
  }
  std::printf("fuzz: %zu seeds, %llu mutations: no finding\n", seeds.size(),
              static_cast<unsigned long long>(only ? 1 : mutations));
  return 0;
}
