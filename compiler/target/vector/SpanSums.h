// Running sums of attention: spans merged in order, and the quotient at the
// end. pack.attention and pack.merge share them, so that both round alike.

#pragma once

#include "compiler/target/vector/VectorLowering.h"
#include "dialects/pack/KvLayout.h"

namespace izhc {

class SpanSums {
public:
  // Below every score and above minus infinity, so that differences are numbers.
  static constexpr double kMasked = -1e30;

  // `sinks`: floats of all heads, or null.
  SpanSums(KernelBuilder &k, pack::KvType type, int64_t lanes, mlir::Value sinks)
      : k(k), type(type), layout(type), lanes(lanes), sinks(sinks) {}

  int64_t columns() const { return layout.valuePanels * pack::KvLayout::kLanes; }
  int64_t outputBytes() const { return 4 * columns(); }

  // Maximum, sum and `outputs` (whole panels) of no keys at all.
  void clear(mlir::Value maximum, mlir::Value sum, mlir::Value outputs);
  // Merges maximum and sum of a span into those at `maximum` and `sum`; returns
  // what the outputs so far and those of the span have to be multiplied by.
  std::pair<mlir::Value, mlir::Value> merge(mlir::Value maximum, mlir::Value sum,
                                            mlir::Value spanMaximum, mlir::Value spanSum);
  // `before` * `factor` + `span` * `spanFactor`
  mlir::Value fold(mlir::Value before, mlir::Value factor, mlir::Value span,
                   mlir::Value spanFactor) {
    return k.mulAdd(before, factor, k.mul(span, spanFactor));
  }
  // The head's result at `row`: `outputs` (spoilt) over the sum.
  void quotient(mlir::Value maximum, mlir::Value sum, mlir::Value outputs, mlir::Value head,
                mlir::Value row);

private:
  KernelBuilder &k;
  pack::KvType type;
  pack::KvLayout layout;
  int64_t lanes;
  mlir::Value sinks;
};

} // namespace izhc
