// The inner loops of attention: products of a block of rows (queries, or
// weights of tokens) with a few vectors of a panel (keys, or values).

#pragma once

#include "compiler/target/vector/PairForm.h"

namespace izhc {

// Rows of pairs, `stride` bytes apart, in the form's numbers.
struct PairRows {
  mlir::Value at;
  int64_t stride, count;
};

// Vectors of consecutive rows of a panel: vector v of row 0 at `starts[v]`.
struct PairVectors {
  mlir::Value at;
  llvm::SmallVector<int64_t> starts;
  // They lie in a page, as float16; else in the form's numbers.
  bool inPage = false;
  // In a page: where to fetch as many bytes from as are read; may be null.
  mlir::Value ahead = {};
};

class PairProducts {
public:
  using Value = mlir::Value;
  using Values = KernelBuilder::Values;

  // Float16 sums take the products of so many rows of a panel, from a multiple
  // of as many on: the tokens of a page, or 64 values of a key.
  static constexpr int64_t kChunk = 32;
  // What the two numbers of Float16 have to stay below, so that no sum of a
  // chunk overflows whatever the other factors are: 32 * 65504 / 32.
  static constexpr int64_t kHeadroomBits = 5;

  PairProducts(KernelBuilder &k, PairForm form) : k(k), form(form) {}

  // Sums to begin with, for `count` rows and `vectors` vectors.
  Values zeros(int64_t count, int64_t vectors);
  // Adds the products of pairs begin..end of the rows. With an `odd` (of the
  // vectors' rows, at least `begin`), rows from there on, which is one at most,
  // are of tokens of which only the first is there.
  Values add(const PairRows &rows, const PairVectors &vectors, Value begin, Value end, Value odd,
             llvm::ArrayRef<Value> sums);
  // [row][vector] -> [row][output vector] of `lanes` float32 each.
  Values outputs(llvm::ArrayRef<Value> sums);

private:
  Values chunk(const PairRows &rows, const PairVectors &vectors, Value begin, Value end, Value odd,
               llvm::ArrayRef<Value> sums);
  Values span(const PairRows &rows, const PairVectors &vectors, Value begin, Value end,
              bool hidesOdd, llvm::ArrayRef<Value> sums);
  Value load(const PairVectors &vectors, Value line, int64_t vector, bool hidesOdd);
  Value factorAt(Value at);
  Value multiplyAdd(Value factor, Value vector, Value sum);
  void fetch(const PairVectors &vectors, Value row);

  KernelBuilder &k;
  PairForm form;
};

} // namespace izhc
