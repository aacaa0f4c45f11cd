// Sums in double: the differences are often seven digits below the terms.

#include "tools/izhc/Agreement.h"
#include <algorithm>
#include <cmath>

namespace izhc::tool {

double Mean::standardError() const {
  if (n < 2)
    return 0;
  double mean = value();
  double variance = std::max(0.0, squares / double(n) - mean * mean);
  return std::sqrt(variance / double(n - 1));
}

bool logSoftmax(llvm::ArrayRef<float> logits, std::vector<double> &out) {
  float most = -INFINITY;
  for (float logit : logits) {
    // Not a number fails every comparison.
    if (!(logit < INFINITY))
      return false;
    most = std::max(most, logit);
  }
  if (most == -INFINITY)
    return false;
  double sum = 0;
  for (float logit : logits)
    sum += std::exp(double(logit) - most);
  double total = std::log(sum);
  out.resize(logits.size());
  for (size_t i = 0; i < logits.size(); ++i)
    out[i] = (double(logits[i]) - most) - total;
  return true;
}

void Agreement::add(llvm::ArrayRef<double> reference, llvm::ArrayRef<double> other, int32_t next) {
  assert(reference.size() == other.size() && size_t(next) < other.size());
  double divergence = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    double p = std::exp(reference[i]);
    // What the reference rules out adds nothing: p log p goes to 0.
    if (p > 0)
      divergence += p * (reference[i] - other[i]);
  }
  // Rounding can leave two equal rows a little below 0.
  divergence = std::max(divergence, 0.0);
  auto best = [](llvm::ArrayRef<double> row) {
    return std::max_element(row.begin(), row.end()) - row.begin();
  };
  nll.add(-other[next]);
  kl.add(divergence);
  same.add(best(reference) == best(other) ? 1 : 0);
  most = std::max(most, divergence);
  all.push_back(float(divergence));
}

double Agreement::divergenceQuantile(double share) const {
  if (all.empty())
    return 0;
  std::vector<float> sorted = all;
  size_t place = std::min(sorted.size() - 1, size_t(share * double(sorted.size())));
  std::nth_element(sorted.begin(), sorted.begin() + place, sorted.end());
  return sorted[place];
}

} // namespace izhc::tool
