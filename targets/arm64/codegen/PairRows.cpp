// smmla: products of two rows of eight codes with two rows of eight values.
//
// A vector of codes holds four values of k for each of four rows, an operand
// of smmla eight for each of two. So codes of two vectors are zipped, and of
// two rows of activations X and Y every second dword is taken (k in dwords):
//
//   codes    r0:0 r1:0 r2:0 r3:0 | r0:2 r1:2 r2:2 r3:2
//   zip1     r0:0 r0:2 r1:0 r1:2      zip2   r2:0 r2:2 r3:0 r3:2
//   values   X:0  X:2  Y:0  Y:2       (uzp1 of X:0..3 and Y:0..3; uzp2 for 1, 3)
//   sums     r0X  r0Y  r1X  r1Y              r2X  r2Y  r3X  r3Y
//
// Dwords 0 and 2, not 0 and 1, because vectors of nibbles hold 0 and 1, 2 and
// 3: zipped before they are unpacked, two take the place of four.

#include "targets/arm64/codegen/PairRows.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "targets/arm64/codegen/DotValues.h"
#include "llvm/ADT/MapVector.h"

namespace izhc::arm64 {

using namespace mlir;

namespace {

// Whether each lane of `op`'s result comes from that lane of its first operand
// alone, in the same way as in `other`.
bool sameLanewise(Operation *op, Operation *other) {
  if (!op || !other || op->getName() != other->getName() ||
      !isa<arith::AndIOp, arith::ShRUIOp, arith::ShLIOp>(op))
    return false;
  DenseElementsAttr mine, theirs;
  return matchPattern(op->getOperand(1), m_Constant(&mine)) &&
         matchPattern(other->getOperand(1), m_Constant(&theirs)) && mine == theirs &&
         mine.isSplat();
}

class PairOfRows {
public:
  PairOfRows(KernelBuilder &k, DotChain &x, DotChain &y)
      : k(k), x(x), y(y), dwords(k.vec(4, k.i32())), bytes(k.vec(16, k.i8())) {}

  void lower() {
    k.builder.setInsertionPoint(y.front());
    Value low = zip(x.front().getAcc(), y.front().getAcc(), false);
    Value high = zip(x.front().getAcc(), y.front().getAcc(), true);
    for (size_t i = 0; i < x.size(); i += 4) {
      // Here all codes of the four dots are known.
      k.builder.setInsertionPoint(y[i + 3]);
      Value first = values(x[i]), second = values(y[i]);
      for (size_t odd : {0, 1}) {
        Value a = x[i + odd].getCodes(), b = x[i + odd + 2].getCodes();
        int64_t o = odd;
        Value both = k.bitcast(k.shuffle(first, second, {o, o + 2, o + 4, o + 6}), bytes);
        low = multiply(low, zip(a, b, false), both);
        high = multiply(high, zip(a, b, true), both);
      }
    }
    k.builder.setInsertionPoint(y.back());
    Value ofX = k.shuffle(low, high, {0, 2, 4, 6}), ofY = k.shuffle(low, high, {1, 3, 5, 7});
    replaceChain(x, ofX);
    replaceChain(y, ofY);
  }

private:
  Value values(pack::DotOp dot) {
    Place place = placeOf(dot);
    return k.load(dwords, k.at(place.base, place.offset), 4);
  }
  Value multiply(Value sum, Value codes, Value both) {
    return intrinsic(k, dwords, "llvm.aarch64.neon.smmla.v4i32.v16i8", {sum, codes, both});
  }
  // The lower or higher dwords of a and b by turns; what was done to both is
  // done afterwards, so that the zip is shared with others.
  Value zip(Value a, Value b, bool higher) {
    Operation *left = a.getDefiningOp(), *right = b.getDefiningOp();
    if (a.getType() == bytes && sameLanewise(left, right)) {
      IRMapping mapping;
      mapping.map(left->getOperand(0), zip(left->getOperand(0), right->getOperand(0), higher));
      return k.builder.clone(*left, mapping)->getResult(0);
    }
    int64_t from = higher ? 2 : 0;
    Value zipped =
        k.shuffle(k.bitcast(a, dwords), k.bitcast(b, dwords), {from, from + 4, from + 1, from + 5});
    return k.bitcast(zipped, a.getType());
  }

  KernelBuilder &k;
  DotChain &x, &y;
  Type dwords, bytes;
};

// Whether pairs of rows take fewer instructions. For 32 weights of four rows
// and eight rows of activations sdot takes 64. smmla takes half as many, 16 to
// pair the activations and 8 to part the sums: 56, and zips of codes, which are
// 4 for nibbles and 8 for anything else. Sums that don't begin at zero would
// have to be paired too.
bool gains(DotChain &chain) {
  if (chain.size() < 8 || chain.size() % 4 != 0 || !matchPattern(chain[0].getAcc(), m_Zero()))
    return false;
  for (size_t i = 0; i < chain.size(); i += 4)
    if (!valuesInARow(llvm::ArrayRef(chain).drop_front(i)) ||
        !sameLanewise(chain[i].getCodes().getDefiningOp(), chain[i + 2].getCodes().getDefiningOp()))
      return false;
  return true;
}

bool sameCodes(DotChain &a, DotChain &b) {
  auto codes = [](pack::DotOp dot) { return dot.getCodes(); };
  return llvm::equal(llvm::map_range(a, codes), llvm::map_range(b, codes));
}

} // namespace

void lowerPairsOfRows(ModuleOp module) {
  llvm::SmallVector<DotChain> chains = dotChains(module);
  // By the first codes: chains of all rows.
  llvm::MapVector<Value, llvm::SmallVector<DotChain *>> groups;
  for (DotChain &chain : chains)
    if (gains(chain))
      groups[chain.front().getCodes()].push_back(&chain);
  for (auto &[codes, rows] : groups)
    for (size_t i = 0; i + 1 < rows.size(); i += 2) {
      // With fewer rows the zips outweigh what the products save.
      if (rows.size() < 8 || !sameCodes(*rows[i], *rows[i + 1]))
        continue;
      OpBuilder builder(rows[i]->front());
      KernelBuilder k(builder, rows[i]->front().getLoc(), {});
      PairOfRows(k, *rows[i], *rows[i + 1]).lower();
    }
}

} // namespace izhc::arm64
