// Runs a model over and over with changing numbers of threads, while another
// thread moves all threads of the process between cores at random. Every run
// has to give the bits of the first one.
//   threads_stress MODEL.izh [RUNS] [SEED]

#include <dirent.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "runtime/include/izh/izh.h"

namespace {

constexpr uint32_t kTokens = 48;
constexpr uint32_t kMaxThreads = 5;
// Creating a context starts threads, ending it joins them while they may be late.
constexpr uint32_t kRunsOfAContext = 2;

[[noreturn]] void fail(const char *what, const char *why) {
  fprintf(stderr, "threads_stress: %s: %s\n", what, why);
  exit(1);
}

void check(izh_status status, const char *what, const izh_error &error) {
  if (status != IZH_OK)
    fail(what, error.message);
}

// Gives every thread of this process a random choice of the cores that it had
// at the start.
class Shaker {
public:
  explicit Shaker(uint64_t seed) : random_(seed) {
    CPU_ZERO(&allowed_);
    if (sched_getaffinity(0, sizeof(allowed_), &allowed_) != 0)
      return;
    thread_ = std::thread([this] {
      while (!stop_.load()) {
        shake();
        std::this_thread::sleep_for(std::chrono::microseconds(random_() % 1000));
      }
    });
  }
  ~Shaker() {
    stop_ = true;
    if (thread_.joinable())
      thread_.join();
  }
  uint64_t changes() const { return changes_.load(); }

private:
  void shake() {
    DIR *tasks = opendir("/proc/self/task");
    if (!tasks)
      return;
    while (const dirent *entry = readdir(tasks)) {
      const int id = atoi(entry->d_name);
      cpu_set_t some;
      CPU_ZERO(&some);
      for (int core = 0; core < CPU_SETSIZE; ++core) {
        if (CPU_ISSET(core, &allowed_) && random_() % 2)
          CPU_SET(core, &some);
      }
      // A thread that has ended meanwhile and an empty choice are refused.
      if (id > 0 && sched_setaffinity(id, sizeof(some), &some) == 0)
        ++changes_;
    }
    closedir(tasks);
  }

  std::mt19937_64 random_;
  cpu_set_t allowed_;
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> changes_{0};
  std::thread thread_;
};

class Runner {
public:
  Runner(const char *path, uint64_t seed) : random_(seed) {
    check(izh_model_open(path, nullptr, &model_, &error_), "opening the model", error_);
    izh_model_get_info(model_, &info_);
    for (uint32_t i = 0; i < kTokens; ++i) {
      ids_.push_back(static_cast<int32_t>(i * 7919 % info_.vocabulary));
    }
    create(1);
    expected_ = run();
  }
  ~Runner() {
    izh_context_destroy(context_);
    izh_model_close(model_);
  }

  // One run. False if its logits are others.
  bool again(uint64_t index) {
    if (index % kRunsOfAContext == 0) {
      izh_context_destroy(context_);
      create(1 + static_cast<uint32_t>(random_() % kMaxThreads));
    }
    const std::vector<float> logits = run();
    return memcmp(logits.data(), expected_.data(), logits.size() * sizeof(float)) == 0;
  }

private:
  void create(uint32_t threads) {
    const izh_context_options options = {threads, kTokens, 1};
    check(izh_context_create(model_, &options, &context_, &error_), "creating a context", error_);
    check(izh_sequence_create(context_, &sequence_, &error_), "creating a sequence", error_);
  }

  // All tokens in chunks of random sizes; the logits after the last one.
  std::vector<float> run() {
    std::vector<float> logits(info_.vocabulary);
    check(izh_sequence_truncate(sequence_, 0, &error_), "emptying the sequence", error_);
    for (uint32_t done = 0; done < kTokens;) {
      const uint32_t count = std::min<uint32_t>(1 + random_() % 16, kTokens - done);
      const izh_input input = {sequence_, ids_.data() + done, count, 1};
      check(izh_context_run(context_, &input, 1, logits.data(), &error_), "a run", error_);
      done += count;
    }
    return logits;
  }

  std::mt19937_64 random_;
  izh_error error_ = {};
  izh_model *model_ = nullptr;
  izh_model_info info_ = {};
  izh_context *context_ = nullptr;
  izh_sequence *sequence_ = nullptr;
  std::vector<int32_t> ids_;
  std::vector<float> expected_;
};

} // namespace

int main(int count, char **words) {
  if (count < 2) {
    fprintf(stderr, "Usage: threads_stress MODEL.izh [RUNS] [SEED]\n");
    return 2;
  }
  const uint64_t runs = count > 2 ? strtoull(words[2], nullptr, 10) : 100;
  const uint64_t seed = count > 3 ? strtoull(words[3], nullptr, 10) : 1;
  Runner runner(words[1], seed);
  uint64_t wrong = 0;
  Shaker shaker(seed);
  for (uint64_t i = 0; i < runs; ++i)
    wrong += !runner.again(i);
  printf("%llu runs, %llu changes of affinity, %llu runs with other logits\n",
         static_cast<unsigned long long>(runs), static_cast<unsigned long long>(shaker.changes()),
         static_cast<unsigned long long>(wrong));
  return wrong != 0;
}
