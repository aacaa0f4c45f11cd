// One use at a time, of which all but Link may be several.

#include "compiler/target/LlvmOptions.h"
#include "llvm/Support/CommandLine.h"
#include <cassert>
#include <condition_variable>
#include <mutex>

using namespace izhc;

namespace {
struct Holders {
  std::mutex mutex;
  std::condition_variable released;
  LlvmUse use = LlvmUse::Generate;
  unsigned count = 0;
};
} // namespace

static Holders &holders() {
  static Holders holders;
  return holders;
}

// The pass has no other switch.
static void setLoopReduction(bool on) {
  auto &options = llvm::cl::getRegisteredOptions();
  auto found = options.find("disable-lsr");
  assert(found != options.end() && "LLVM has this option");
  if (found != options.end())
    static_cast<llvm::cl::opt<bool> *>(found->second)->setValue(!on);
}

LlvmOptions::LlvmOptions(LlvmUse use) {
  Holders &all = holders();
  std::unique_lock<std::mutex> lock(all.mutex);
  all.released.wait(lock,
                    [&] { return all.count == 0 || (all.use == use && use != LlvmUse::Link); });
  if (all.count++ == 0) {
    all.use = use;
    setLoopReduction(use != LlvmUse::GenerateLoopsAsIs);
  }
}

LlvmOptions::~LlvmOptions() {
  Holders &all = holders();
  std::lock_guard<std::mutex> lock(all.mutex);
  if (--all.count == 0)
    all.released.notify_all();
}
