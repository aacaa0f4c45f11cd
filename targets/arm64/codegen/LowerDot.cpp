// A chain of dots is a sum handed from one pack.dot to the next. Chains are
// lowered as a whole, because Neon keeps 16-bit partial sums along them;
// instructions stay near their dots, so that loads of weights keep their order.

#include "targets/arm64/codegen/LowerDot.h"
#include "compiler/target/vector/Lookups.h"
#include "targets/arm64/codegen/DotValues.h"
#include "targets/arm64/codegen/PairRows.h"

namespace izhc::arm64 {

using namespace mlir;

namespace {

// sdot can repeat any four bytes of a register by itself: one load for four
// dots, where repeating while loading would take four. `together`: these stand
// in one place. With several rows of activations four vectors of codes are
// alive then, not one of values for each row.
Value lowerDotProd(KernelBuilder &k, llvm::ArrayRef<pack::DotOp> chain, bool together) {
  pack::DotOp head = chain.front();
  Type bytes = head.getValues().getType(), dwords = head.getType();
  Value total = head.getAcc(), four;
  int64_t used = 4;
  for (size_t i = 0; i < chain.size(); ++i) {
    pack::DotOp dot = chain[i];
    if (used == 4 && valuesInARow(chain.drop_front(i))) {
      k.builder.setInsertionPoint(together ? chain[i + 3] : dot);
      Place place = placeOf(dot);
      four = k.load(dwords, k.at(place.base, place.offset), 4);
      used = 0;
    }
    if (used == 4 || !together)
      k.builder.setInsertionPoint(dot);
    Value values = dot.getValues();
    if (used < 4) {
      values = k.bitcast(k.shuffle(four, four, llvm::SmallVector<int64_t>(4, used)), bytes);
      ++used;
    }
    total =
        intrinsic(k, dwords, "llvm.aarch64.neon.sdot.v4i32.v16i8", {total, dot.getCodes(), values});
  }
  return total;
}

// Sums of a chain, a 32-bit lane being two or four lanes of these:
//
//   products   8 x i16, low and high   a0 a1 a2 a3 b0 b1 b2 b3 | c0 .. c3 d0 .. d3
//   addp       8 x i16                 a01 a23 b01 b23 c01 c23 d01 d23
//   sadalp     4 x i32                 a       b       c       d
//
// Codes too large for addp in 16 bits go by sadalp first: a01 a23 b01 b23 and
// c01 c23 d01 d23 of 32 bits, joined by one addp at the end of the chain.
class NeonChain {
public:
  NeonChain(KernelBuilder &k, int64_t max)
      : k(k), words(k.vec(8, k.i16())), dwords(k.vec(4, k.i32())), fit(32767 / (127 * max)),
        narrow(fit >= 4) {
    // Pairs of products have to fit into 16 bits too.
    if (narrow)
      fit /= 2;
  }

  Value lower(llvm::ArrayRef<pack::DotOp> chain) {
    pack::DotOp head = chain.front();
    Value total = head.getAcc(), wide[2];
    int64_t held = 0;
    for (pack::DotOp dot : chain) {
      k.builder.setInsertionPoint(dot);
      for (int64_t half : {0, 1}) {
        Value products = multiply(dot, half);
        partial[half] = held == 0 ? products : k.add(partial[half], products);
      }
      if (++held != fit && dot != chain.back())
        continue;
      held = 0;
      if (narrow) {
        Value pairs = intrinsic(k, words, "llvm.aarch64.neon.addp.v8i16", {partial[0], partial[1]});
        total = k.add(total, widen(pairs));
        continue;
      }
      for (int64_t half : {0, 1}) {
        Value sums = widen(partial[half]);
        wide[half] = wide[half] ? k.add(wide[half], sums) : sums;
      }
    }
    if (narrow)
      return total;
    return k.add(total, intrinsic(k, dwords, "llvm.aarch64.neon.addp.v4i32", wide));
  }

private:
  Value multiply(pack::DotOp dot, int64_t half) {
    llvm::SmallVector<int64_t, 8> lanes;
    for (int64_t lane = 0; lane < 8; ++lane)
      lanes.push_back(8 * half + lane);
    Value codes = k.shuffle(dot.getCodes(), dot.getCodes(), lanes);
    Value values = k.shuffle(dot.getValues(), dot.getValues(), lanes);
    return intrinsic(k, words, "llvm.aarch64.neon.smull.v8i16", {codes, values});
  }
  Value widen(Value sums) {
    return intrinsic(k, dwords, "llvm.aarch64.neon.saddlp.v4i32.v8i16", sums);
  }

  KernelBuilder &k;
  Type words, dwords;
  int64_t fit; // how many dots a 16-bit sum may hold
  bool narrow;
  Value partial[2];
};

llvm::LogicalResult check(pack::DotOp dot) {
  if (cast<VectorType>(dot.getType()).getDimSize(0) != 4)
    return dot.emitError("has vectors that are not of 128 bits");
  if (dot.getMax() > (dot.getSignedCodes() ? 128 : 127))
    return dot.emitError("multiplies codes up to ")
           << dot.getMax() << ", but only signed bytes can be multiplied here";
  return success();
}

} // namespace

llvm::LogicalResult lowerDots(ModuleOp module, DotUnit unit) {
  auto walked = module.walk([&](pack::DotOp dot) { return WalkResult(check(dot)); });
  if (walked.wasInterrupted())
    return failure();
  replaceLookups(module, [](KernelBuilder &k, Value table, Value indices) {
    return intrinsic(k, indices.getType(), "llvm.aarch64.neon.tbl1.v16i8", {table, indices});
  });
  if (unit == DotUnit::I8mm)
    lowerPairsOfRows(module);
  // Codes that several rows read.
  llvm::DenseSet<Value> shared;
  module.walk([&](pack::DotOp dot) {
    if (!dot.getCodes().hasOneUse())
      shared.insert(dot.getCodes());
  });
  replaceDotChains(module, [&](KernelBuilder &k, llvm::MutableArrayRef<pack::DotOp> chain) {
    return unit == DotUnit::Neon
               ? NeonChain(k, chain.front().getMax()).lower(chain)
               : lowerDotProd(k, chain, shared.contains(chain.front().getCodes()));
  });
  return success();
}

} // namespace izhc::arm64
