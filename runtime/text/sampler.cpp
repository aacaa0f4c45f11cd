// The sampling chain. Only as much is sorted as the cuts look at: vocabularies
// have a hundred thousand tokens, and a few hold all of the probability.

#include "runtime/text/sampler.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/status.h"

namespace izh {
namespace {

using Candidate = izh_sampler::Candidate;

constexpr uint32_t kMaxWindow = 1u << 20;

// Better first; of equal ones the lower id, so that the order is total.
bool better(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

uint64_t rotate_left(uint64_t value, int bits) { return value << bits | value >> (64 - bits); }

void penalise(izh_sampler* sampler) {
  const float penalty = sampler->options.repeat_penalty;
  if (penalty == 1.0f || sampler->window.empty()) return;
  if (++sampler->round == 0) {
    for (uint32_t& mark : sampler->penalised) mark = 0;
    sampler->round = 1;
  }
  for (const int32_t id : sampler->window) {
    // Once, however often it occurred.
    if (sampler->penalised[id] == sampler->round) continue;
    sampler->penalised[id] = sampler->round;
    float& logit = sampler->candidates[id].logit;
    logit = logit > 0.0f ? logit / penalty : logit * penalty;
  }
}

// The first `count` become the best ones, in order.
void sort_best(Array<Candidate>* candidates, size_t count) {
  std::partial_sort(candidates->begin(), candidates->begin() + count, candidates->end(), better);
}

void keep_top_k(izh_sampler* sampler) {
  const uint32_t k = sampler->options.top_k;
  Array<Candidate>& all = sampler->candidates;
  if (k == 0 || k >= all.size()) return;
  std::nth_element(all.begin(), all.begin() + k, all.end(), better);
  static_cast<void>(all.resize(k));
}

float best_logit(const Array<Candidate>& candidates) {
  return std::min_element(candidates.begin(), candidates.end(), better)->logit;
}

// The fewest best ones whose probability together is at least top_p.
void keep_top_p(izh_sampler* sampler) {
  const float p = sampler->options.top_p;
  Array<Candidate>& all = sampler->candidates;
  if (p >= 1.0f) return;
  const double best = best_logit(all);
  double total = 0;
  for (const Candidate& candidate : all) total += std::exp(candidate.logit - best);
  const double wanted = p * total;
  double sum = 0;
  size_t sorted = 0;
  for (size_t kept = 0; kept < all.size();) {
    if (kept == sorted) {
      // What is sorted already is better than all that follows.
      const size_t more = std::min(all.size(), std::max<size_t>(64, sorted * 4));
      std::partial_sort(all.begin() + sorted, all.begin() + more, all.end(), better);
      sorted = more;
    }
    sum += std::exp(all[kept++].logit - best);
    if (sum >= wanted) {
      static_cast<void>(all.resize(kept));
      return;
    }
  }
}

// Those at least min_p times as probable as the best.
void keep_min_p(izh_sampler* sampler) {
  const float p = sampler->options.min_p;
  Array<Candidate>& all = sampler->candidates;
  if (p <= 0.0f) return;
  const float least = best_logit(all) + std::log(p);
  size_t kept = 0;
  for (const Candidate& candidate : all) {
    if (candidate.logit >= least) all[kept++] = candidate;
  }
  // Rounding may not lose the best one.
  if (kept == 0) {
    sort_best(&all, 1);
    kept = 1;
  }
  static_cast<void>(all.resize(kept));
}

int32_t draw(izh_sampler* sampler) {
  Array<Candidate>& all = sampler->candidates;
  const double best = best_logit(all);
  const double scale = 1.0 / sampler->options.temperature;
  double total = 0;
  for (const Candidate& candidate : all) total += std::exp((candidate.logit - best) * scale);
  double left = sampler->random.uniform() * total;
  int32_t chosen = -1;
  for (const Candidate& candidate : all) {
    const double weight = std::exp((candidate.logit - best) * scale);
    if (weight <= 0) continue;
    // Rounding may leave a little after the last one.
    chosen = candidate.id;
    left -= weight;
    if (left < 0) break;
  }
  return chosen;
}

// All tokens with their logits. What is not a number is never chosen, and an
// infinite logit is only very large.
void collect(izh_sampler* sampler, const float* logits) {
  constexpr float kLargest = 3.0e38f;
  static_cast<void>(sampler->candidates.resize(sampler->vocabulary));
  for (uint32_t i = 0; i < sampler->vocabulary; ++i) {
    float logit = logits[i];
    if (!(logit >= -kLargest)) logit = -kLargest;
    if (logit > kLargest) logit = kLargest;
    sampler->candidates[i] = {logit, static_cast<int32_t>(i)};
  }
}

izh_status check_options(const izh_sampler_options& o, uint32_t vocabulary, izh_error* error) {
  const auto refuse = [error](const char* name, double found, const char* expected) {
    return fail(error, IZH_INVALID_ARGUMENT, "the sampling option %s is %g, expected %s", name,
                found, expected);
  };
  if (vocabulary == 0 || vocabulary > INT32_MAX) {
    return refuse("vocabulary", vocabulary, "at least 1 and below 2^31");
  }
  if (!(o.temperature >= 0 && std::isfinite(o.temperature))) {
    return refuse("temperature", o.temperature, "0 (greedy) or more");
  }
  if (!(o.top_p > 0 && o.top_p <= 1)) return refuse("top-p", o.top_p, "more than 0, at most 1");
  if (!(o.min_p >= 0 && o.min_p <= 1)) return refuse("min-p", o.min_p, "0 to 1");
  if (!(o.repeat_penalty > 0 && std::isfinite(o.repeat_penalty))) {
    return refuse("repeat-penalty", o.repeat_penalty, "more than 0 (1: off)");
  }
  if (o.repeat_window > kMaxWindow) {
    return refuse("repeat-window", o.repeat_window, "at most 1048576 tokens");
  }
  return IZH_OK;
}

}  // namespace

Random::Random(uint64_t seed) {
  for (uint64_t& word : state_) {
    seed += 0x9e3779b97f4a7c15u;
    uint64_t z = seed;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    word = z ^ (z >> 31);
  }
}

uint64_t Random::next() {
  const uint64_t result = rotate_left(state_[1] * 5, 7) * 9;
  const uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = rotate_left(state_[3], 45);
  return result;
}

}  // namespace izh

izh_status izh_sampler_create(const izh_sampler_options* options, uint32_t vocabulary,
                              izh_sampler** out, izh_error* error) {
  *out = nullptr;
  IZH_TRY(izh::check_options(*options, vocabulary, error));
  auto* sampler = izh::heap_create<izh_sampler>(*options);
  if (sampler) sampler->vocabulary = vocabulary;
  if (!sampler || !sampler->candidates.reserve(vocabulary) ||
      !sampler->penalised.resize(vocabulary) || !sampler->window.reserve(options->repeat_window)) {
    izh::heap_destroy(sampler);
    return izh::fail(error, IZH_OUT_OF_MEMORY, "no memory is left to sample from %u tokens",
                     vocabulary);
  }
  *out = sampler;
  return IZH_OK;
}

void izh_sampler_destroy(izh_sampler* sampler) { izh::heap_destroy(sampler); }

void izh_sampler_accept(izh_sampler* sampler, int32_t id) {
  const uint32_t window = sampler->options.repeat_window;
  if (window == 0 || id < 0 || static_cast<uint32_t>(id) >= sampler->vocabulary) return;
  if (sampler->window.size() < window) {
    // There is room: it was reserved.
    static_cast<void>(sampler->window.push(id));
    return;
  }
  sampler->window[sampler->oldest] = id;
  sampler->oldest = (sampler->oldest + 1) % window;
}

int32_t izh_sampler_next(izh_sampler* sampler, const float* logits) {
  izh::collect(sampler, logits);
  izh::penalise(sampler);
  int32_t id;
  if (sampler->options.temperature == 0) {
    id = std::min_element(sampler->candidates.begin(), sampler->candidates.end(), izh::better)->id;
  } else {
    izh::keep_top_k(sampler);
    izh::keep_top_p(sampler);
    izh::keep_min_p(sampler);
    id = izh::draw(sampler);
  }
  izh_sampler_accept(sampler, id);
  return id;
}
