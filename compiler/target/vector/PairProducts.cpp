// Factors are repeated in all lanes, so that a vector of a panel serves all
// rows of the block; what a sum is made of doesn't depend on the block.

#include "compiler/target/vector/PairProducts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace izhc {

using namespace mlir;
using pack::KvLayout;

// Bytes of a row of a float16 panel.
static constexpr int64_t kPageRow = 4 * KvLayout::kLanes;

PairProducts::Values PairProducts::zeros(int64_t count, int64_t vectors) {
  int64_t each = form.number == PairNumber::Float16 ? 2 : 1;
  return Values(count * vectors * each, k.zero(k.vec(form.lanes, k.f32())));
}

// One pair of a row, in all lanes.
Value PairProducts::factorAt(Value at) {
  Type type = k.vec(form.numbers(), form.element(k));
  return k.bitcast(form.isNarrow() ? k.loadSplat(k.i32(), form.lanes, at)
                                   : k.loadSplat(k.i64(), form.lanes / 2, at),
                   type);
}

Value PairProducts::multiplyAdd(Value factor, Value vector, Value sum) {
  if (form.number == PairNumber::BFloat16)
    return pack::DotPairsOp::create(k.builder, k.loc, sum.getType(), sum, factor, vector);
  return k.mulAdd(factor, vector, sum);
}

// With `hidesOdd` the second of each pair becomes zero: what its place holds,
// times a weight of 0, might be no number.
Value PairProducts::load(const PairVectors &vectors, Value line, int64_t vector, bool hidesOdd) {
  Value from = k.at(line, vectors.starts[vector]);
  Type type = k.vec(form.numbers(), form.element(k));
  if (!vectors.inPage)
    return k.load(type, from, unsigned(form.vectorBytes()));
  Value bits;
  if (hidesOdd) {
    Value pairs = k.load(k.vec(form.numbers() / 2, k.i32()), from, 2);
    bits = k.bitcast(k.andBits(pairs, 0xffff), k.vec(form.numbers(), k.i16()));
  } else {
    bits = k.load(k.vec(form.numbers(), k.i16()), from, 2);
  }
  if (form.number == PairNumber::Float16)
    return k.bitcast(bits, type);
  Value floats = k.halfToFloat(bits);
  return form.isNarrow() ? arith::TruncFOp::create(k.builder, k.loc, type, floats) : floats;
}

void PairProducts::fetch(const PairVectors &vectors, Value row) {
  int64_t bytes = int64_t(vectors.starts.size()) * kPageRow / form.vectors();
  Value place = k.at(vectors.ahead, k.mul(row, bytes));
  for (int64_t line = 0; line < bytes; line += 64)
    k.prefetch(k.at(place, line));
}

PairProducts::Values PairProducts::span(const PairRows &rows, const PairVectors &vectors,
                                        Value begin, Value end, bool hidesOdd,
                                        ArrayRef<Value> sums) {
  int64_t rowBytes = vectors.inPage ? kPageRow : form.rowBytes();
  size_t each = vectors.starts.size();
  return k.loop(begin, end, k.constI64(1), sums, [&](Value pair, ArrayRef<Value> carried) {
    Values next(carried.begin(), carried.end()), factors;
    Value line = k.at(vectors.at, k.mul(pair, rowBytes));
    Value factor = k.at(rows.at, k.mul(pair, form.pairBytes()));
    if (vectors.ahead && !hidesOdd)
      fetch(vectors, pair);
    for (int64_t i = 0; i < rows.count; ++i)
      factors.push_back(factorAt(k.at(factor, i * rows.stride)));
    for (size_t v = 0; v < each; ++v) {
      Value vector = load(vectors, line, int64_t(v), hidesOdd);
      for (int64_t i = 0; i < rows.count; ++i) {
        Value &sum = next[i * each + v];
        sum = multiplyAdd(factors[i], vector, sum);
      }
    }
    return next;
  });
}

// Rows of one chunk: on top of the sums, or of zeros that are widened.
PairProducts::Values PairProducts::chunk(const PairRows &rows, const PairVectors &vectors,
                                         Value begin, Value end, Value odd, ArrayRef<Value> sums) {
  bool halves = form.number == PairNumber::Float16;
  Values own(sums.begin(), sums.end());
  if (halves)
    own.assign(sums.size() / 2, k.zero(k.vec(form.numbers(), form.element(k))));
  Value whole = odd ? k.min(end, odd) : end;
  own = span(rows, vectors, begin, whole, /*hidesOdd=*/false, own);
  if (odd)
    own = span(rows, vectors, k.max(begin, odd), end, /*hidesOdd=*/true, own);
  if (!halves)
    return own;
  Values next;
  SmallVector<int64_t> low, high;
  for (int64_t i = 0; i < form.lanes; ++i) {
    low.push_back(i);
    high.push_back(form.lanes + i);
  }
  Type floats = k.vec(form.lanes, k.f32());
  for (auto [i, sum] : llvm::enumerate(own))
    for (ArrayRef<int64_t> part : {ArrayRef(low), ArrayRef(high)})
      next.push_back(k.add(sums[next.size()], arith::ExtFOp::create(k.builder, k.loc, floats,
                                                                    k.shuffle(sum, sum, part))));
  return next;
}

PairProducts::Values PairProducts::add(const PairRows &rows, const PairVectors &vectors,
                                       Value begin, Value end, Value odd, ArrayRef<Value> sums) {
  if (form.number != PairNumber::Float16)
    return chunk(rows, vectors, begin, end, odd, sums);
  Value last = k.div(k.add(end, kChunk - 1), kChunk);
  return k.loop(k.div(begin, kChunk), last, k.constI64(1), sums,
                [&](Value number, ArrayRef<Value> carried) {
                  Value first = k.mul(number, kChunk);
                  return chunk(rows, vectors, k.max(begin, first), k.min(end, k.add(first, kChunk)),
                               odd, carried);
                });
}

// Lanes hold sums of even and of odd products: vectors 2i and 2i + 1 together
// make one vector of outputs.
PairProducts::Values PairProducts::outputs(ArrayRef<Value> sums) {
  if (form.number == PairNumber::BFloat16)
    return Values(sums.begin(), sums.end());
  SmallVector<int64_t> even, odd;
  for (int64_t i = 0; i < form.lanes; ++i) {
    even.push_back(2 * i);
    odd.push_back(2 * i + 1);
  }
  Values joined;
  for (size_t i = 0; i < sums.size(); i += 2)
    joined.push_back(
        k.add(k.shuffle(sums[i], sums[i + 1], even), k.shuffle(sums[i], sums[i + 1], odd)));
  return joined;
}

} // namespace izhc
