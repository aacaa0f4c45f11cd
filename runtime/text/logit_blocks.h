// The logits of a whole vocabulary, in blocks. A few tokens hold all of the
// probability, so what looks for those passes over whole blocks by their
// greatest logit, and what needs all of them takes several at a time.

#pragma once

#include <cstdint>

#include "runtime/base/array.h"

namespace izh {

struct Candidate {
  float logit;
  int32_t id;
};

class LogitBlocks {
 public:
  // Memory for a vocabulary of at least 1.
  [[nodiscard]] bool reserve(uint32_t vocabulary);

  // What is not a number counts as the least of logits, and an infinite one is
  // only very large. Then those that are to be others are set; `summarise` comes
  // before anything else is asked.
  void assign(const float* logits);
  float at(int32_t id) const { return logits_[static_cast<size_t>(id)]; }
  void set(int32_t id, float logit);
  void summarise();

  float best() const { return best_; }
  // The lowest id of the best.
  int32_t best_id() const;
  // A logit that at least `count` tokens (1 or more) reach, near the greatest such one.
  float reached_by(uint32_t count);
  // All that reach `least`, by id. There has to be room in `to`.
  void collect(float least, Array<Candidate>* to) const;

  // Gives each token the weight exp((logit - best) * scale), to 1e-6 of it, and
  // returns their sum.
  double weigh(double scale);
  // The first token with which the sum of weights in order of ids is more than
  // `sum`, or where rounding leaves none, the last that weighs anything.
  int32_t drawn(double sum) const;

 private:
  uint32_t vocabulary_ = 0;
  float best_ = 0;
  Array<float> logits_, weights_;  // to whole blocks
  Array<float> bests_, sorted_;    // of each block
  Array<double> sums_;             // of weights, of each block
};

}  // namespace izh
