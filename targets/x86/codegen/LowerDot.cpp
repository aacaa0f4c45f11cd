// A chain of dots is a sum handed from one pack.dot to the next. Chains are
// lowered as a whole, because Avx2 keeps 16-bit partial sums along them; each
// instruction stays where its dot was, so that loads keep their order.

#include "targets/x86/codegen/LowerDot.h"
#include "compiler/target/vector/DotChains.h"
#include "compiler/target/vector/Lookups.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace izhc::x86 {

using namespace mlir;

namespace {

Value intrinsic(KernelBuilder &k, Type result, llvm::StringRef name, ValueRange operands) {
  return LLVM::CallIntrinsicOp::create(k.builder, k.loc, result, k.builder.getStringAttr(name),
                                       operands)
      .getResult(0);
}

// codes * values summed in pairs to 16 bits, saturating; never saturates for
// codes up to 128.
Value pairSums(KernelBuilder &k, pack::DotOp dot, Type words) {
  Value codes = dot.getCodes(), values = dot.getValues();
  if (dot.getSignedCodes()) {
    values = intrinsic(k, values.getType(), "llvm.x86.avx2.psign.b", {values, codes});
    codes = math::AbsIOp::create(k.builder, k.loc, codes);
  }
  return intrinsic(k, words, "llvm.x86.avx2.pmadd.ub.sw", {codes, values});
}

Value lowerAvx2(KernelBuilder &k, llvm::MutableArrayRef<pack::DotOp> chain) {
  auto dwords = cast<VectorType>(chain.front().getType());
  Type words = k.vec(2 * dwords.getDimSize(0), k.i16());
  // Pair sums of at most 2 * max * 127 that fit into 16 bits together.
  int64_t fit = std::max<int64_t>(1, 32767 / (2 * chain.front().getMax() * 127));
  Value total = chain.front().getAcc(), partial;
  int64_t held = 0;
  for (pack::DotOp dot : chain) {
    k.builder.setInsertionPoint(dot);
    Value sums = pairSums(k, dot, words);
    partial = held == 0 ? sums : k.add(partial, sums);
    if (++held == fit || dot == chain.back()) {
      Value wide = intrinsic(k, dwords, "llvm.x86.avx2.pmadd.wd", {partial, k.constInt(words, 1)});
      total = k.add(total, wide);
      held = 0;
    }
  }
  return total;
}

// One dot alone.
Value lowerOne(KernelBuilder &k, pack::DotOp dot, Value acc, DotUnit unit) {
  auto dwords = cast<VectorType>(dot.getType());
  int64_t lanes = dwords.getDimSize(0);
  if (unit == DotUnit::Vnni)
    return intrinsic(k, dwords,
                     lanes == 16 ? "llvm.x86.avx512.vpdpbusd.512" : "llvm.x86.avx512.vpdpbusd.256",
                     {acc, dot.getCodes(), dot.getValues()});
  Type words = k.vec(2 * lanes, k.i16());
  Value codes = k.bitcast(dot.getCodes(), words), values = k.bitcast(dot.getValues(), words);
  auto low = [&](Value v, bool isSigned) {
    return isSigned ? k.shrS(k.shl(v, 8), 8) : k.andBits(v, 255);
  };
  auto high = [&](Value v, bool isSigned) { return isSigned ? k.shrS(v, 8) : k.shrU(v, 8); };
  bool isSigned = dot.getSignedCodes();
  for (bool odd : {false, true}) {
    Value a = odd ? high(codes, isSigned) : low(codes, isSigned);
    Value b = odd ? high(values, true) : low(values, true);
    acc = k.add(acc, intrinsic(k, dwords, "llvm.x86.sse2.pmadd.wd", {a, b}));
  }
  return acc;
}

} // namespace

void lowerDots(ModuleOp module, DotUnit unit) {
  auto shuffle = [](KernelBuilder &k, Value table, Value indices) {
    bool wide = cast<VectorType>(indices.getType()).getDimSize(0) == 64;
    return intrinsic(k, indices.getType(),
                     wide ? "llvm.x86.avx512.pshuf.b.512" : "llvm.x86.avx2.pshuf.b",
                     {table, indices});
  };
  if (unit == DotUnit::Sse2)
    replaceLookups(module, nullptr);
  else
    replaceLookups(module, shuffle);
  replaceDotChains(module, [&](KernelBuilder &k, llvm::MutableArrayRef<pack::DotOp> chain) {
    if (unit == DotUnit::Avx2)
      return lowerAvx2(k, chain);
    Value acc = chain.front().getAcc();
    for (pack::DotOp dot : chain) {
      k.builder.setInsertionPoint(dot);
      acc = lowerOne(k, dot, acc, unit);
    }
    return acc;
  });
}

void lowerPairDots(ModuleOp module) {
  module.walk([](pack::DotPairsOp dot) {
    OpBuilder builder(dot);
    KernelBuilder k(builder, dot.getLoc(), {});
    dot.replaceAllUsesWith(intrinsic(k, dot.getType(), "llvm.x86.avx512bf16.dpbf16ps.512",
                                     {dot.getAcc(), dot.getLhs(), dot.getRhs()}));
    dot.erase();
  });
}

} // namespace izhc::x86
