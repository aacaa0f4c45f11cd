// The one order in which the terms of a product are added, by kernels for one
// row and for many alike, so that what a row gives doesn't depend on how many
// rows are computed with it.
//
// The columns of a row are cut into chunks of 64, and these into spans of
// chunksEach() chunks (the last may be shorter). A span's sum begins with 0 and
// adds terms with ascending columns; the sums of spans are then added in
// ascending order. A term belongs to
//
//   float weights, or float activations: a column
//     sum = fma(weight, activation, sum)
//   else: a run of weights that share all scales (16 or 32 of them), with
//   w its scale (times its sub-scale), m its minimum (times its sub-minimum,
//   negative where it is subtracted), a what one step of the activations' codes
//   means there, s what all codes of the run together mean (their sum times a)
//     sum = fma(w * float(sum of codes * codes), a, sum)
//     sum = fma(m, s, sum)                        where there are minima
//
// The sum of products of codes, zero point subtracted, is an exact integer.

#pragma once

#include "llvm/Support/MathExtras.h"

namespace izhc::cuda {

class Spans {
public:
  static constexpr int64_t kChunk = 64; // columns
  static constexpr int64_t kMost = 16;  // spans
  static constexpr int64_t kLeast = 2;  // chunks of a span

  explicit Spans(int64_t columns) : chunks(llvm::divideCeil(columns, kChunk)) {}

  int64_t chunkCount() const { return chunks; }
  int64_t chunksEach() const { return std::max<int64_t>(kLeast, llvm::divideCeil(chunks, kMost)); }
  int64_t columnsEach() const { return chunksEach() * kChunk; }
  int64_t count() const { return llvm::divideCeil(chunks, chunksEach()); }

private:
  int64_t chunks;
};

} // namespace izhc::cuda
