// The limits, and which of them holds.

#include "tools/izhc/Roofline.h"
#include "compiler/support/Error.h"
#include "runtime/schema/step.h"
#include "runtime/schema/step_time.h"
#include "runtime/schema/window.h"
#include "tools/izhc/Report.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <cmath>

namespace izhc::tool {

namespace {

// Bytes of a page of each kind of state.
struct PageBytes {
  uint64_t tokens = 0, windows = 0, sequences = 0;

  explicit PageBytes(const emit::Plan &plan) {
    for (auto [index, size] : llvm::enumerate(plan.statePageBytes))
      (llvm::is_contained(plan.sequenceStates, index) ? sequences
       : plan.stateWindows.count(index)               ? windows
                                                      : tokens) += size;
  }
};

} // namespace

uint64_t cacheBytesPerToken(const emit::Plan &plan) {
  return PageBytes(plan).tokens / std::max(plan.pageTokens, 1u);
}

uint64_t stateBytes(const emit::Plan &plan) { return PageBytes(plan).sequences; }

// On a processor.
static uint32_t stepTokens(const emit::Plan &plan) {
  return izh::schema::processor_step_tokens(std::max(plan.maxTokens, 1u));
}

uint64_t windowBytes(const emit::Plan &plan) {
  uint64_t most = 0;
  for (auto [index, window] : plan.stateWindows)
    most = std::max<uint64_t>(most, window);
  if (most == 0)
    return 0;
  return PageBytes(plan).windows *
         izh::schema::window_pages(most, stepTokens(plan), std::max(plan.pageTokens, 1u));
}

uint64_t cacheBytesRead(const emit::Plan &plan, uint64_t context) {
  uint64_t bytes = cacheBytesPerToken(plan) * context;
  for (auto [index, window] : plan.stateWindows)
    bytes += plan.statePageBytes[index] / std::max(plan.pageTokens, 1u) *
             std::min<uint64_t>(context, window);
  return bytes;
}

llvm::Expected<MachineLimits> parseMachine(llvm::StringRef text) {
  MachineLimits machine;
  llvm::SmallVector<llvm::StringRef> parts;
  text.split(parts, ',');
  for (llvm::StringRef part : parts) {
    auto [name, number] = part.split('=');
    double *place = name == "gbps"       ? &machine.gbps
                    : name == "gops"     ? &machine.gops
                    : name == "phase_us" ? &machine.phaseUs
                                         : nullptr;
    double value = 0;
    if (!place || *place != 0 || number.getAsDouble(value) || !std::isfinite(value) || value <= 0 ||
        value > 1e9)
      return makeError("--machine takes gbps=NUMBER,gops=NUMBER[,phase_us=NUMBER], each over 0 and "
                       "once, not {0}",
                       quote(text));
    *place = value;
  }
  if (machine.gbps == 0 || machine.gops == 0)
    return makeError("--machine lacks {0}=NUMBER: 'izh-rt bench' measures it",
                     machine.gbps == 0 ? "gbps" : "gops");
  return machine;
}

static Prediction atMost(const MachineLimits &machine, double bytes, double operations,
                         double phases, double tokens) {
  auto time = izh::schema::step_time({machine.gbps, machine.gops, machine.phaseUs}, bytes,
                                     operations, phases);
  return {time.seconds > 0 ? tokens / time.seconds : 0, time.memory};
}

Prediction predictDecode(const emit::Plan &plan, const MachineLimits &machine, uint64_t context) {
  double bytes =
      double(plan.tokenBytes) + double(stateBytes(plan)) + double(cacheBytesRead(plan, context));
  return atMost(machine, bytes, double(plan.tokenOperations) + double(plan.outputOperations),
                double(plan.dispatches.size()), 1);
}

Prediction predictPrompt(const emit::Plan &plan, const MachineLimits &machine, uint64_t tokens) {
  // Each chunk reads the weights once.
  uint64_t chunks = llvm::divideCeil(tokens, stepTokens(plan));
  return atMost(machine, double(plan.tokenBytes) * double(chunks),
                double(plan.tokenOperations) * double(tokens) + double(plan.outputOperations),
                double(plan.dispatches.size()) * double(chunks), double(tokens));
}

void printRoofline(const emit::Plan &plan, const MachineLimits *machine, llvm::raw_ostream &out) {
  double operations = double(plan.tokenOperations) + double(plan.outputOperations);
  out << "roofline\n";
  auto line = [&](const char *what, const std::string &value) {
    out << llvm::formatv("  {0,-30} {1}\n", what, value);
  };
  line("weights read for a token", megabytes(plan.tokenBytes));
  line("cache read for 1000 before it", megabytes(cacheBytesRead(plan, 1000)));
  if (uint64_t bytes = stateBytes(plan))
    line("states of the sequence", megabytes(bytes));
  line("operations of a token", llvm::formatv("{0:f3} G, {1:f3} G of them for its logits",
                                              operations / 1e9, plan.outputOperations / 1e9));
  if (!machine) {
    line("predicted speed", "--machine=gbps=NUMBER,gops=NUMBER tells for which machine");
    return;
  }
  auto predicted = [&](const std::string &what, const Prediction &prediction) {
    line(what.c_str(), llvm::formatv("{0:f1} tokens/s, limited by {1}", prediction.tokensPerSecond,
                                     prediction.memory ? "memory" : "arithmetic"));
  };
  out << llvm::formatv("predicted at most, for {0} GB/s, {1} GOP/s and {2} us a phase\n",
                       machine->gbps, machine->gops, machine->phaseUs);
  for (uint64_t context : {0, 4096, 32768})
    predicted(llvm::formatv("generation after {0}", context),
              predictDecode(plan, *machine, context));
  for (uint64_t tokens : {128, 512})
    predicted(llvm::formatv("prompt of {0}", tokens), predictPrompt(plan, *machine, tokens));
}

} // namespace izhc::tool
