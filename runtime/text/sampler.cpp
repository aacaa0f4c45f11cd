// The sampling chain. Only as much is sorted as the cuts look at: vocabularies
// have a hundred thousand tokens, and a few hold all of the probability.

#include "runtime/text/sampler.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/status.h"

namespace izh {
namespace {

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
    const float logit = sampler->logits.at(id);
    sampler->logits.set(id, logit > 0.0f ? logit / penalty : logit * penalty);
  }
}

// From here on only `candidates` are in the race.
void cut_to(izh_sampler* sampler, float least) {
  static_cast<void>(sampler->candidates.resize(0));
  sampler->logits.collect(least, &sampler->candidates);
  sampler->cut = true;
}

// The first `count` become the best ones, in order.
void sort_best(Array<Candidate>* candidates, size_t count) {
  std::partial_sort(candidates->begin(), candidates->begin() + count, candidates->end(), better);
}

void keep_top_k(izh_sampler* sampler) {
  const uint32_t k = sampler->options.top_k;
  if (k == 0 || k >= sampler->vocabulary) return;
  cut_to(sampler, sampler->logits.reached_by(k));
  Array<Candidate>& all = sampler->candidates;
  std::nth_element(all.begin(), all.begin() + k, all.end(), better);
  static_cast<void>(all.resize(k));
}

// Of all candidates, with probabilities as they are before the temperature.
double total_weight(izh_sampler* sampler) {
  if (!sampler->cut) return sampler->logits.weigh(1);
  const double best = sampler->logits.best();
  double total = 0;
  for (const Candidate& candidate : sampler->candidates) total += std::exp(candidate.logit - best);
  return total;
}

// Keeps the fewest first ones that weigh `wanted` together. False if the first
// `sorted`, which are in order, are too few.
bool keep_weight(izh_sampler* sampler, size_t sorted, double wanted) {
  const double best = sampler->logits.best();
  double sum = 0;
  for (size_t kept = 0; kept < sorted; ++kept) {
    sum += std::exp(sampler->candidates[kept].logit - best);
    if (sum < wanted) continue;
    static_cast<void>(sampler->candidates.resize(kept + 1));
    return true;
  }
  return false;
}

// The fewest best ones whose probability together is at least top_p.
void keep_top_p(izh_sampler* sampler) {
  const float p = sampler->options.top_p;
  if (p >= 1.0f) return;
  const double wanted = p * total_weight(sampler);
  const bool cut = sampler->cut;
  const size_t all = cut ? sampler->candidates.size() : sampler->vocabulary;
  for (size_t tried = std::min<size_t>(64, all);; tried = std::min(all, 4 * tried)) {
    if (!cut) cut_to(sampler, sampler->logits.reached_by(static_cast<uint32_t>(tried)));
    sort_best(&sampler->candidates, tried);
    if (keep_weight(sampler, tried, wanted) || tried == all) return;
  }
}

// Those at least min_p times as probable as the best.
void keep_min_p(izh_sampler* sampler) {
  const float p = sampler->options.min_p;
  if (p <= 0.0f) return;
  // The best one stays, whatever is rounded.
  const float best = sampler->logits.best(), least = std::min(best, best + std::log(p));
  if (!sampler->cut) return cut_to(sampler, least);
  Array<Candidate>& all = sampler->candidates;
  size_t kept = 0;
  for (const Candidate& candidate : all) {
    if (candidate.logit >= least) all[kept++] = candidate;
  }
  static_cast<void>(all.resize(kept));
}

int32_t draw(izh_sampler* sampler) {
  const double scale = 1.0 / sampler->options.temperature;
  if (!sampler->cut) {
    const double total = sampler->logits.weigh(scale);
    return sampler->logits.drawn(sampler->random.uniform() * total);
  }
  const double best = sampler->logits.best();
  const auto weight = [&](const Candidate& candidate) {
    return std::exp((candidate.logit - best) * scale);
  };
  double total = 0;
  for (const Candidate& candidate : sampler->candidates) total += weight(candidate);
  double left = sampler->random.uniform() * total;
  int32_t chosen = -1;
  for (const Candidate& candidate : sampler->candidates) {
    const double its_weight = weight(candidate);
    if (its_weight <= 0) continue;
    // Rounding may leave a little after the last one.
    chosen = candidate.id;
    left -= its_weight;
    if (left < 0) break;
  }
  return chosen;
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
      !sampler->logits.reserve(vocabulary) || !sampler->penalised.resize(vocabulary) ||
      !sampler->window.reserve(options->repeat_window)) {
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
  sampler->logits.assign(logits);
  izh::penalise(sampler);
  sampler->logits.summarise();
  sampler->cut = false;
  int32_t id;
  if (sampler->options.temperature == 0) {
    id = sampler->logits.best_id();
  } else {
    izh::keep_top_k(sampler);
    izh::keep_top_p(sampler);
    izh::keep_min_p(sampler);
    id = izh::draw(sampler);
  }
  izh_sampler_accept(sampler, id);
  return id;
}
