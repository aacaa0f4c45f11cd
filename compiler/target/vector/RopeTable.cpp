// pack.rope_table: cosines and sines of the step's positions, one row a token.

#include "compiler/target/vector/Pieces.h"
#include "compiler/target/vector/VectorLowering.h"

namespace izhc {

using namespace mlir;

// What cosines and sines are multiplied by; null for 1.
static Value ropeMagnitude(KernelBuilder &k, pack::RopeTableOp op, Value position) {
  Value magnitude = k.constFloat(k.f32(), op.getMagnitude().convertToDouble());
  if (op.getGrowth().isZero())
    return op.getMagnitude().isExactlyValue(1.0) ? Value() : magnitude;
  Value periods = k.div(position, k.constInt(k.i32(), op.getPeriod()));
  Value log = k.log(k.intToFloat(k.add(periods, 1)));
  Value growth = k.mul(log, k.constFloat(k.f32(), op.getGrowth().convertToDouble()));
  return k.mul(magnitude, k.add(growth, k.constFloat(k.f32(), 1.0)));
}

llvm::LogicalResult emitRopeTable(KernelFrame &frame, pack::RopeTableOp op) {
  KernelBuilder &k = frame.k;
  int64_t n = cast<MemRefType>(op.getFrequencies().getType()).getDimSize(0);
  Value positions = frame.address(op.getPositions());
  Value frequencies = frame.address(op.getFrequencies());
  Value out = frame.address(op.getInto());
  k.loop(frame.begin, frame.end, 1, [&](Value token) {
    Value position = k.load(k.i32(), k.at(positions, k.mul(token, 4)), 4);
    Value row = k.at(out, k.mul(token, 8 * n));
    Value cosines = row, sines = k.at(row, 4 * n);
    Value magnitude = ropeMagnitude(k, op, position);
    forEachPiece(k, n, frame.machine.lanes, [&](Value offset, int64_t piece) {
      Type type = k.vec(piece, k.f32());
      Value angle =
          k.mul(k.splat(k.intToFloat(position), piece), k.load(type, k.at(frequencies, offset), 4));
      Value cosine, sine;
      k.cosSin(angle, cosine, sine);
      if (magnitude) {
        cosine = k.mul(cosine, k.splat(magnitude, piece));
        sine = k.mul(sine, k.splat(magnitude, piece));
      }
      k.store(cosine, k.at(cosines, offset), 4);
      k.store(sine, k.at(sines, offset), 4);
    });
  });
  return success();
}

} // namespace izhc
