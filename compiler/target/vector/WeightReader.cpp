// Unpacking as PackedLayout.h draws it: shifts of 16-bit lanes, masks and ors.

#include "compiler/target/vector/WeightReader.h"

namespace izhc {

using namespace mlir;

// Bits [width * group, width * (group + 1)) of every byte, moved to the
// plane's place within the code. There is no byte shift on most machines;
// what a 16-bit shift brings in from the neighbour is masked off.
Value WeightReader::planeBits(Value vector, const CodePlane &plane, int64_t group) {
  int64_t right = int64_t(plane.width) * group - plane.shift;
  Type words = k.vec(2 * lanes, k.i16());
  if (right != 0) {
    Value wide = k.bitcast(vector, words);
    wide = right > 0 ? k.shrU(wide, right) : k.shl(wide, -right);
    vector = k.bitcast(wide, vector.getType());
  }
  int64_t mask = ((int64_t(1) << plane.width) - 1) << plane.shift;
  return mask == 255 ? vector : k.andBits(vector, int64_t(int8_t(mask)));
}

Value WeightReader::codes(Planes &planes, Value bytes, int64_t kk) {
  planes.vectors.resize(layout.planes.size());
  planes.offsets.resize(layout.planes.size(), -1);
  // Narrow planes cover more weights and come first in the stream.
  llvm::SmallVector<size_t, 2> order;
  for (size_t i = 0; i < layout.planes.size(); ++i)
    order.push_back(i);
  llvm::sort(order,
             [&](size_t a, size_t b) { return layout.planes[a].width < layout.planes[b].width; });
  for (size_t i : order) {
    int64_t offset = layout.planeOffset(i, kk);
    if (planes.offsets[i] == offset)
      continue;
    planes.offsets[i] = offset;
    planes.vectors[i] = k.load(k.vec(4 * lanes, k.i8()), k.at(bytes, offset), unsigned(4 * lanes));
  }
  Value result;
  for (size_t i = 0; i < layout.planes.size(); ++i) {
    const CodePlane &plane = layout.planes[i];
    int64_t group = kk % (32 / plane.width) / 4;
    Value bits = planeBits(planes.vectors[i], plane, group);
    result = result ? k.orBits(result, bits) : bits;
  }
  return result;
}

Value WeightReader::scale(Value halves, int64_t kk) {
  return k.halfToFloat(
      k.load(k.vec(lanes, k.i16()), k.at(halves, layout.scaleOffset(kk)), unsigned(2 * lanes)));
}

Value WeightReader::minimum(Value halves, int64_t kk) {
  return k.halfToFloat(
      k.load(k.vec(lanes, k.i16()), k.at(halves, layout.minOffset(kk)), unsigned(2 * lanes)));
}

void WeightReader::unpackSixBit(Value bytes, Value scratch) {
  Type type = k.vec(4 * lanes, k.i8());
  Value packed[3];
  for (int64_t i = 0; i < 3; ++i)
    packed[i] = k.load(type, k.at(bytes, layout.subOffset(0) + 64 * i), unsigned(4 * lanes));
  for (int64_t q = 0; q < 4; ++q) {
    Value low = planeBits(packed[q / 2], CodePlane{4, 0}, q % 2);
    Value high = planeBits(packed[2], CodePlane{2, 4}, q);
    k.store(k.orBits(low, high), k.at(scratch, 64 * q), unsigned(4 * lanes));
  }
}

Value WeightReader::subDwords(Value bytes, Value scratch) {
  Value from = layout.subs == SubScales::SixBitPacked ? scratch : k.at(bytes, layout.subOffset(0));
  return k.load(k.vec(lanes, k.i32()), from, unsigned(4 * lanes));
}

Value WeightReader::byteOf(Value dwords, int64_t index, bool isSigned) {
  if (isSigned)
    return k.shrS(k.shl(dwords, 24 - 8 * index), 24);
  Value value = k.shrU(dwords, 8 * index);
  return index == 3 ? value : k.andBits(value, 255);
}

Value WeightReader::sub(Value dwords, int64_t kk) {
  Value value = byteOf(dwords, kk / spec.subWeights, spec.signedSub);
  if (spec.subBits == 4)
    value = k.andBits(value, 15);
  if (spec.subZero)
    value = k.add(value, -int64_t(spec.subZero));
  return k.intToFloat(value);
}

Value WeightReader::subMin(Value dwords, int64_t kk) {
  int64_t index = kk / spec.subWeights;
  if (spec.subBits == 4)
    return k.intToFloat(k.shrU(byteOf(dwords, index, false), 4));
  return k.intToFloat(byteOf(dwords, 2 + index, false));
}

} // namespace izhc
