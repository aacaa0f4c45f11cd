// A vocabulary has 50 000 to 260 000 logits: one by one, where each comparison
// waits for the one before, the choice takes as long as several layers of a
// small model. So blocks of logits keep only their maximum, in many lanes, and
// the best block is searched.

#include "runtime/base/best_logit.h"

#include "runtime/base/lanes.h"

namespace izh {
namespace {

constexpr uint32_t kVectors = 4;  // in flight, more than a maximum takes cycles
constexpr uint32_t kStep = kLanes * kVectors;
constexpr uint32_t kBlock = 64 * kStep;

struct Summary {
  float greatest;
  bool usable;
};

// `count` is a multiple of kStep, and not 0.
Summary summarise(const float* logits, uint32_t count) {
  Floats greatest[kVectors];
  Words usable[kVectors];
  memcpy(greatest, logits, sizeof(greatest));
  for (Words& lane : usable) lane = Words{-1, -1, -1, -1};
  for (uint32_t i = 0; i < count; i += kStep) {
    for (uint32_t v = 0; v < kVectors; ++v) {
      const Floats x = load_lanes(logits + i + v * kLanes);
      usable[v] &= x < __builtin_inff();
      greatest[v] = greater_lanes(x, greatest[v]);
    }
  }
  Summary all = {greatest_lane(greatest[0]), true};
  for (uint32_t v = 0; v < kVectors; ++v) {
    const float greatest_here = greatest_lane(greatest[v]);
    all.greatest = greatest_here > all.greatest ? greatest_here : all.greatest;
    for (uint32_t lane = 0; lane < kLanes; ++lane) all.usable &= usable[v][lane] != 0;
  }
  return all;
}

Summary summarise_few(const float* logits, uint32_t count) {
  Summary all = {logits[0], true};
  for (uint32_t i = 0; i < count; ++i) {
    all.usable &= logits[i] < __builtin_inff();
    all.greatest = logits[i] > all.greatest ? logits[i] : all.greatest;
  }
  return all;
}

}  // namespace

int32_t best_logit(const float* logits, uint32_t count) {
  float greatest = logits[0];
  uint32_t first = 0;  // of the block that has it
  for (uint32_t begin = 0; begin < count;) {
    const uint32_t left = count - begin;
    const uint32_t size = left < kStep ? left : left < kBlock ? left - left % kStep : kBlock;
    const Summary block =
        size < kStep ? summarise_few(logits + begin, size) : summarise(logits + begin, size);
    if (!block.usable) return -1;
    if (block.greatest > greatest) {
      greatest = block.greatest;
      first = begin;
    }
    begin += size;
  }
  while (logits[first] != greatest) ++first;
  return static_cast<int32_t>(first);
}

}  // namespace izh
