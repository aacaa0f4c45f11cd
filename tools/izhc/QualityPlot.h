// An SVG of models as points: size across, loss of quality upwards.

#pragma once

#include "llvm/Support/raw_ostream.h"
#include <string>
#include <vector>

namespace izhc::tool {

struct QualityPoint {
  std::string name;
  double megabytes;
  double divergence; // mean KL to the reference, in nats
};

// Divergences are drawn on a logarithmic axis; points at 0 (or not finite) are
// left out.
void writeQualityPlot(const std::string &reference, const std::vector<QualityPoint> &points,
                      llvm::raw_ostream &out);

} // namespace izhc::tool
