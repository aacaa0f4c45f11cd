// pack.rope_table: cosines and sines of the step's positions, one row a token.

#include "compiler/target/vector/Pieces.h"
#include "compiler/target/vector/VectorLowering.h"

namespace izhc {

using namespace mlir;

llvm::LogicalResult emitRopeTable(KernelFrame &frame, pack::RopeTableOp op) {
  KernelBuilder &k = frame.k;
  int64_t n = cast<MemRefType>(op.getFrequencies().getType()).getDimSize(0);
  double magnitude = op.getMagnitude().convertToDouble();
  Value positions = frame.address(op.getPositions());
  Value frequencies = frame.address(op.getFrequencies());
  Value out = frame.address(op.getInto());
  k.loop(frame.begin, frame.end, 1, [&](Value token) {
    Value position = k.load(k.i32(), k.at(positions, k.mul(token, 4)), 4);
    Value row = k.at(out, k.mul(token, 8 * n));
    Value cosines = row, sines = k.at(row, 4 * n);
    forEachPiece(k, n, frame.machine.lanes, [&](Value offset, int64_t piece) {
      Type type = k.vec(piece, k.f32());
      Value angle =
          k.mul(k.splat(k.intToFloat(position), piece), k.load(type, k.at(frequencies, offset), 4));
      Value cosine, sine;
      k.cosSin(angle, cosine, sine);
      if (magnitude != 1.0) {
        cosine = k.mul(cosine, k.constFloat(type, magnitude));
        sine = k.mul(sine, k.constFloat(type, magnitude));
      }
      k.store(cosine, k.at(cosines, offset), 4);
      k.store(sine, k.at(sines, offset), 4);
    });
  });
  return success();
}

} // namespace izhc
