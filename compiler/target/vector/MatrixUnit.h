// A matrix unit: eight registers of up to 16 rows of 64 bytes, and an
// instruction that multiplies two of them and adds the result to a third. A
// target that has one says how each step is written; PanelProduct uses it.

#pragma once

#include "compiler/target/KernelBuilder.h"

namespace izhc {

class MatrixUnit {
public:
  using Value = mlir::Value;

  // Rows of activations that one product takes; sums have as many columns.
  static constexpr int64_t kRows = 16;
  // Registers by what they hold: sums of kRows rows of 64 bytes; activations,
  // kRows rows of `depth` bytes; codes, `depth` / 4 rows of 64 bytes.
  static constexpr int64_t kSums = 4, kOperands = 2;
  static constexpr int64_t sums(int64_t i) { return i % kSums; }
  static constexpr int64_t activations(int64_t i) { return kSums + i % kOperands; }
  static constexpr int64_t codes(int64_t i) { return kSums + kOperands + i % kOperands; }

  virtual ~MatrixUnit() = default;

  // Shapes the registers for products over `depth` bytes, a multiple of 4 of at
  // most 64. Between this and `release` the registers may be used.
  virtual void configure(KernelBuilder &k, int64_t depth) const = 0;
  virtual void release(KernelBuilder &k) const = 0;
  // Rows lie `stride` bytes apart.
  virtual void load(KernelBuilder &k, int64_t to, Value from, int64_t stride) const = 0;
  virtual void store(KernelBuilder &k, int64_t from, Value to, int64_t stride) const = 0;
  virtual void clear(KernelBuilder &k, int64_t sums) const = 0;
  // Signed bytes: sums[r][c] += sum over j below depth of
  // activations[r][j] * codes[j / 4][4c + j % 4], exactly.
  virtual void multiply(KernelBuilder &k, int64_t sums, int64_t activations,
                        int64_t codes) const = 0;
};

} // namespace izhc
