// How far a model's predictions are from those of a reference: pure
// arithmetic on rows of logits.

#pragma once

#include "llvm/ADT/ArrayRef.h"
#include <cstddef>
#include <cstdint>
#include <vector>

namespace izhc::tool {

// A mean with its standard error.
class Mean {
public:
  void add(double value) {
    sum += value;
    squares += value * value;
    ++n;
  }
  size_t count() const { return n; }
  double value() const { return n ? sum / double(n) : 0; }
  double standardError() const;

private:
  double sum = 0, squares = 0;
  size_t n = 0;
};

// log of softmax over `logits`, in nats. False where a logit is not a number
// or infinite upwards; minus infinity is a token that is ruled out.
bool logSoftmax(llvm::ArrayRef<float> logits, std::vector<double> &out);

// One model against the reference, over rows of a text.
class Agreement {
public:
  // Rows of log-probabilities for the same place; `next` is the token that
  // follows there.
  //   divergence = sum over i of p_i (log p_i - log q_i), p the reference
  void add(llvm::ArrayRef<double> reference, llvm::ArrayRef<double> other, int32_t next);

  const Mean &loss() const { return nll; }      // -log q[next]
  const Mean &divergence() const { return kl; } // KL(reference || other)
  const Mean &sameBest() const { return same; } // 1 where both have one best token
  double greatestDivergence() const { return most; }
  // The divergence that `share` of the rows stay below.
  double divergenceQuantile(double share) const;

private:
  Mean nll, kl, same;
  double most = 0;
  std::vector<float> all;
};

} // namespace izhc::tool
