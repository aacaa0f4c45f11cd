// Unpacking as PackedLayout.h draws it: shifts of 16-bit lanes, masks and ors.

#include "compiler/target/vector/WeightReader.h"
#include "dialects/pack/Pack.h"

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
    planes.vectors[i] = loadBytes(k.at(bytes, offset));
  }
  Value result;
  for (size_t i = 0; i < layout.planes.size(); ++i) {
    const CodePlane &plane = layout.planes[i];
    int64_t group = kk % (32 / plane.width) / 4;
    Value bits = planeBits(planes.vectors[i], plane, group);
    result = result ? k.orBits(result, bits) : bits;
  }
  if (spec.codebook.empty())
    return flips ? k.xorBits(result, -128) : result;
  llvm::SmallVector<int8_t, 16> table(spec.codebook);
  for (int8_t &code : table)
    code = flips ? int8_t(code ^ -128) : code;
  return pack::LookupOp::create(k.builder, k.loc, result.getType(), result,
                                k.builder.getDenseI8ArrayAttr(table));
}

Value WeightReader::scale(Value bytes, Value halves, int64_t kk) {
  if (spec.grid && !layout.headBytes)
    return k.halfToFloat(k.truncate(staticElement(FieldRole::Scale, bytes, 0), k.i16()));
  switch (spec.scaleKind) {
  case ScaleKind::Half:
    break;
  case ScaleKind::PerSub:
    return k.constFloat(k.vec(lanes, k.f32()), 1.0);
  case ScaleKind::PowerOfTwo: {
    // The byte becomes the exponent of a float.
    Value both = k.extendU(loadWords(halves), k.i32());
    Value exponent = kk % 64 < 32 ? k.andBits(both, 255) : k.shrU(both, 8);
    return k.bitcast(k.shl(exponent, 23), k.vec(lanes, k.f32()));
  }
  }
  return k.halfToFloat(loadWords(k.at(halves, layout.scaleOffset(kk))));
}

Value WeightReader::minimum(Value halves, int64_t kk) {
  return k.halfToFloat(loadWords(k.at(halves, layout.minOffset(kk))));
}

// Bytes 0 and 1 of each dword; the others are zero.
void WeightReader::unpackEight(Value bytes, Value halves, Value scratch) {
  Value low =
      loadStream(k, k.vec(lanes, k.i32()), k.at(bytes, layout.subOffset(0)), alignOf(4 * lanes));
  Value high = k.extendU(loadWords(k.at(halves, layout.highOffset())), k.i32());
  for (int64_t q = 0; q < 4; ++q) {
    Value l = k.shrU(low, 8 * q), h = k.shrU(high, 4 * q);
    Value first = k.orBits(k.andBits(l, 0x0f), k.shl(k.andBits(h, 3), 4));
    Value second = k.orBits(k.shl(k.andBits(l, 0xf0), 4), k.shl(k.andBits(h, 12), 10));
    k.store(k.orBits(first, second), k.at(scratch, 64 * q), unsigned(4 * lanes));
  }
}

void WeightReader::unpackSubs(Value bytes, Value halves, Value scratch) {
  if (layout.subs == SubScales::SixBitEight)
    return unpackEight(bytes, halves, scratch);
  if (layout.subs == SubScales::InWords)
    return unpackWords(bytes, scratch);
  Value packed[3];
  for (int64_t i = 0; i < 3; ++i)
    packed[i] = loadBytes(k.at(bytes, layout.subOffset(0) + 64 * i));
  for (int64_t q = 0; q < 4; ++q) {
    Value low = planeBits(packed[q / 2], CodePlane{4, 0}, q % 2);
    Value high = planeBits(packed[2], CodePlane{2, 4}, q);
    k.store(k.orBits(low, high), k.at(scratch, 64 * q), unsigned(4 * lanes));
  }
}

Value WeightReader::subDwords(Value bytes, Value scratch) {
  Value from = unpacksSubs() ? scratch : k.at(bytes, layout.subOffset(0));
  return loadStream(k, k.vec(lanes, k.i32()), from, alignOf(4 * lanes));
}

Value WeightReader::byteOf(Value dwords, int64_t index, bool isSigned) {
  if (isSigned)
    return k.shrS(k.shl(dwords, 24 - 8 * index), 24);
  Value value = k.shrU(dwords, 8 * index);
  return index == 3 ? value : k.andBits(value, 255);
}

Value WeightReader::sub(Value dwords, int64_t kk) {
  Value value = byteOf(dwords, kk / spec.subWeights, spec.signedSub);
  // The bits as those of a half, whose bias is larger by 8.
  if (spec.scaleKind == ScaleKind::PerSub) {
    Value half = k.truncate(k.shl(k.andBits(value, 127), 7), k.i16());
    return k.mul(k.halfToFloat(half), k.constFloat(k.vec(lanes, k.f32()), 256.0));
  }
  if (spec.subBits == 4)
    value = k.andBits(value, 15);
  if (spec.subStep != 1)
    value = k.mul(value, k.constInt(value.getType(), spec.subStep));
  if (spec.subZero)
    value = k.add(value, -int64_t(spec.subZero));
  return k.intToFloat(value);
}

Value WeightReader::scaleOfSub(Value scale, Value dwords, int64_t kk) {
  return dwords ? k.mul(scale, sub(dwords, kk)) : scale;
}

Value WeightReader::subMin(Value dwords, int64_t kk) {
  int64_t index = kk / spec.subWeights;
  if (spec.subBits == 4)
    return k.intToFloat(k.shrU(byteOf(dwords, index, false), 4));
  return k.intToFloat(byteOf(dwords, 2 + index, false));
}

} // namespace izhc
