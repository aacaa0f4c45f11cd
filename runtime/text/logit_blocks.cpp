#include "runtime/text/logit_blocks.h"

#include <algorithm>

#include "runtime/base/best_logit.h"
#include "runtime/base/lanes.h"

namespace izh {
namespace {

constexpr uint32_t kBlock = 32;
constexpr float kLargest = 3.0e38f;
// The least exponent with a power in the range of normal floats. What weighs
// less than this power counts as nothing.
constexpr float kLeastExponent = -87.0f;

// exp(x) for x of at most 0: 2^n * exp(r) with r of at most log(2) / 2, whose
// series is cut where its terms are below the last bit.
Floats exponential(Floats x) {
  const Words used = x > kLeastExponent;
  x = x > kLeastExponent ? x : all_lanes(0);
  // Adding 1.5 * 2^23 leaves no room for a fraction.
  constexpr float kRounds = 12582912.0f;
  const Floats n = (x * 1.44269504f + kRounds) - kRounds;
  // log(2) in two parts: n times the first is exact.
  const Floats r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  Floats sum = all_lanes(1.0f / 5040);
  for (const float factor : {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f}) {
    sum = sum * r + factor;
  }
  const Words power = (__builtin_convertvector(n, Words) + 127) << 23;
  Floats scale;
  memcpy(&scale, &power, sizeof(scale));
  return used ? sum * scale : all_lanes(0);
}

}  // namespace

bool LogitBlocks::reserve(uint32_t vocabulary) {
  vocabulary_ = vocabulary;
  const size_t blocks = (size_t{vocabulary} + kBlock - 1) / kBlock, all = blocks * kBlock;
  return logits_.resize(all) && weights_.resize(all) && bests_.resize(blocks) &&
         sorted_.resize(blocks) && sums_.resize(blocks);
}

void LogitBlocks::set(int32_t id, float logit) {
  logit = logit > -kLargest ? logit : -kLargest;
  logits_[static_cast<size_t>(id)] = logit < kLargest ? logit : kLargest;
}

void LogitBlocks::assign(const float* logits) {
  memcpy(logits_.data(), logits, vocabulary_ * sizeof(float));
  std::fill(logits_.begin() + vocabulary_, logits_.end(), -kLargest);
  for (size_t i = 0; i < logits_.size(); i += kLanes) {
    Floats x = load_lanes(logits_.data() + i);
    x = greater_lanes(x, all_lanes(-kLargest));
    x = x < kLargest ? x : all_lanes(kLargest);
    store_lanes(x, logits_.data() + i);
  }
}

void LogitBlocks::summarise() {
  for (size_t block = 0; block < bests_.size(); ++block) {
    const float* logits = logits_.data() + block * kBlock;
    Floats greatest = load_lanes(logits);
    for (uint32_t i = kLanes; i < kBlock; i += kLanes) {
      greatest = greater_lanes(load_lanes(logits + i), greatest);
    }
    bests_[block] = greatest_lane(greatest);
  }
  best_ = *std::max_element(bests_.begin(), bests_.end());
}

int32_t LogitBlocks::best_id() const { return best_logit(logits_.data(), vocabulary_); }

float LogitBlocks::reached_by(uint32_t count) {
  // As many blocks have a token each that does.
  if (count > bests_.size()) return -kLargest;
  std::copy(bests_.begin(), bests_.end(), sorted_.begin());
  float* last = sorted_.begin() + (count - 1);
  std::nth_element(sorted_.begin(), last, sorted_.end(), [](float a, float b) { return a > b; });
  return *last;
}

void LogitBlocks::collect(float least, Array<Candidate>* to) const {
  for (size_t block = 0; block < bests_.size(); ++block) {
    if (bests_[block] < least) continue;
    const size_t begin = block * kBlock, end = std::min<size_t>(begin + kBlock, vocabulary_);
    for (size_t id = begin; id < end; ++id) {
      if (logits_[id] < least) continue;
      static_cast<void>(to->push({logits_[id], static_cast<int32_t>(id)}));
    }
  }
}

double LogitBlocks::weigh(double scale) {
  double total = 0;
  const float factor = static_cast<float>(std::min(scale, 1e30));
  for (size_t block = 0; block < bests_.size(); ++block) {
    const size_t begin = block * kBlock;
    Floats sum = all_lanes(0);
    for (uint32_t i = 0; i < kBlock; i += kLanes) {
      const Floats x = (load_lanes(logits_.data() + begin + i) - best_) * factor;
      const Floats weight = exponential(x);
      store_lanes(weight, weights_.data() + begin + i);
      sum += weight;
    }
    sums_[block] = double{sum[0]} + sum[1] + sum[2] + sum[3];
  }
  // What fills the last block is no token.
  const size_t last = bests_.size() - 1;
  sums_[last] = 0;
  for (size_t id = last * kBlock; id < vocabulary_; ++id) sums_[last] += weights_[id];
  for (const double sum : sums_) total += sum;
  return total;
}

int32_t LogitBlocks::drawn(double sum) const {
  size_t block = 0;
  double left = sum, inside = 0;
  for (size_t i = 0; i < sums_.size() && left >= 0; ++i) {
    if (sums_[i] <= 0) continue;
    block = i;
    inside = left;
    left -= sums_[i];
  }
  int32_t chosen = -1;
  const size_t begin = block * kBlock, end = std::min<size_t>(begin + kBlock, vocabulary_);
  for (size_t id = begin; id < end && inside >= 0; ++id) {
    if (weights_[id] <= 0) continue;
    chosen = static_cast<int32_t>(id);
    inside -= weights_[id];
  }
  return chosen;
}

}  // namespace izh
