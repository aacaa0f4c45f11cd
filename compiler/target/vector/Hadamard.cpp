// The fast Walsh-Hadamard transform: sums and differences of values h apart,
// for h = n/2, n/4, ..., 1; within a vector the partner comes by a shuffle.

#include "compiler/target/vector/Hadamard.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include <cmath>

namespace izhc {

using namespace mlir;

namespace {

// Sums and differences within a vector: v * (+1 or -1) + partner.
Value turnLanes(KernelBuilder &k, Value v, int64_t lanes) {
  Type type = v.getType();
  for (int64_t h = lanes / 2; h >= 1; h /= 2) {
    SmallVector<int64_t> partners;
    SmallVector<float> signs;
    for (int64_t i = 0; i < lanes; ++i) {
      partners.push_back(i ^ h);
      signs.push_back(i & h ? -1.0f : 1.0f);
    }
    Value sign = arith::ConstantOp::create(
        k.builder, k.loc, DenseElementsAttr::get(cast<VectorType>(type), ArrayRef<float>(signs)));
    v = k.add(k.mul(v, sign), k.shuffle(v, v, partners));
  }
  return v;
}

} // namespace

void emitHadamard(KernelBuilder &k, Value at, int64_t count, int64_t lanes) {
  int64_t n = count & -count;
  Type floats = k.vec(lanes, k.f32());
  for (int64_t h = n / 2; h >= lanes; h /= 2)
    k.loop(k.constI64(0), k.constI64(4 * count), 8 * h, [&](Value base) {
      k.loop(k.constI64(0), k.constI64(4 * h), 4 * lanes, [&](Value offset) {
        Value low = k.at(at, k.add(base, offset)), high = k.at(low, 4 * h);
        Value a = k.load(floats, low, 4), b = k.load(floats, high, 4);
        k.store(k.add(a, b), low, 4);
        k.store(k.sub(a, b), high, 4);
      });
    });
  Value scale = k.constFloat(floats, 1 / std::sqrt(double(n)));
  k.loop(k.constI64(0), k.constI64(4 * count), 4 * lanes, [&](Value offset) {
    Value place = k.at(at, offset);
    k.store(k.mul(turnLanes(k, k.load(floats, place, 4), lanes), scale), place, 4);
  });
}

} // namespace izhc
