// A token's elements lie apart, so vectors are converted whole and stored in
// single pieces: a pair of a key's values, one element of a value.

#include "compiler/target/vector/KvWriter.h"
#include "compiler/target/vector/Hadamard.h"
#include "compiler/target/vector/Pieces.h"

namespace izhc {

using namespace mlir;
using pack::KvLayout;

KvWriter::KvWriter(KernelBuilder &k, pack::KvType type, int64_t lanes)
    : k(k), type(type), layout(type), lanes(lanes) {
  if (type.isTurned())
    codes = k.stack(64);
}

void KvWriter::place(Value cache, Value slot) {
  page = k.at(cache, k.mul(k.div(slot, layout.page), layout.pageBytes));
  token = k.rem(slot, layout.page);
}

void KvWriter::storeKey(Value cache, Value slot, Value head, Value values) {
  place(cache, slot);
  Value panel = k.at(page, k.add(k.mul(head, layout.keyHeadBytes),
                                 k.mul(k.div(token, KvLayout::kLanes), layout.keyPanelBytes)));
  if (!type.isTurned())
    return keyPairs(panel, values);
  emitHadamard(k, values, type.getDim(), lanes);
  k.loop(k.constI64(0), k.constI64(type.getDim() / KvLayout::kBlock), 1, [&](Value block) {
    Value scale = encodeBlock(k.at(values, k.mul(block, 4 * KvLayout::kBlock)));
    storeKeyBlock(k.at(panel, k.mul(block, layout.keyBlockBytes())), scale);
  });
}

void KvWriter::storeValue(Value cache, Value slot, Value head, Value values) {
  place(cache, slot);
  Value to = k.at(k.at(page, layout.valuesOffset), k.mul(head, layout.valueHeadBytes));
  if (!type.isTurned())
    return valueColumns(to, values);
  emitHadamard(k, values, type.getValueDim(), lanes);
  k.loop(k.constI64(0), k.constI64(type.getValueDim() / KvLayout::kBlock), 1, [&](Value block) {
    Value scale = encodeBlock(k.at(values, k.mul(block, 4 * KvLayout::kBlock)));
    storeValueBlock(k.at(to, k.mul(block, layout.valuePanelBytes)), scale);
  });
}

// Pairs of float16, 64 bytes from one to the next.
void KvWriter::keyPairs(Value panel, Value values) {
  constexpr int64_t kRow = 2 * 2 * KvLayout::kLanes;
  Value to = k.at(panel, k.mul(k.rem(token, KvLayout::kLanes), 4));
  forEachPiece(k, type.getDim(), lanes, [&](Value offset, int64_t piece) {
    Value halves = k.floatToHalf(k.load(k.vec(piece, k.f32()), k.at(values, offset), 4));
    Value row = k.at(to, k.mul(offset, kRow / 8));
    if (piece == 0)
      return k.store(k.extendU(halves, k.i32()), row, 4);
    Value pairs = k.bitcast(halves, k.vec(piece / 2, k.i32()));
    for (int64_t i = 0; i < piece / 2; ++i)
      k.store(k.extract(pairs, i), k.at(row, i * kRow), 4);
  });
}

void KvWriter::valueColumns(Value head, Value values) {
  Value to =
      k.at(head, k.add(k.mul(k.div(token, 2), 4 * KvLayout::kLanes), k.mul(k.rem(token, 2), 2)));
  forEachPiece(k, type.getValueDim(), lanes, [&](Value offset, int64_t piece) {
    Value halves = k.floatToHalf(k.load(k.vec(piece, k.f32()), k.at(values, offset), 4));
    constexpr int64_t kPanel = 4 * KvLayout::kLanes;
    Value column = k.at(
        to, k.add(k.mul(k.div(offset, kPanel), layout.valuePanelBytes), k.rem(offset, kPanel)));
    if (piece == 0)
      return k.store(halves, column, 2);
    for (int64_t i = 0; i < piece; ++i)
      k.store(k.extract(halves, i), k.at(column, 4 * i), 2);
  });
}

// Leaves 32 int8 codes, or 16 bytes of codes i (low) and 16 + i (high), in
// `codes`. Returns the scale as float16 bits. 8 bits: scale = largest / 127.
// 4 bits: the value of largest magnitude, with its sign, becomes -8. Codes are
// made with the rounded scale, as reading does.
Value KvWriter::encodeBlock(Value values) {
  Type floats = k.vec(lanes, k.f32());
  bool wide = layout.bits == 8;
  Value low = k.zero(floats), high = k.zero(floats);
  llvm::SmallVector<Value> loaded;
  for (int64_t i = 0; i < KvLayout::kBlock; i += lanes) {
    loaded.push_back(k.load(floats, k.at(values, 4 * i), 4));
    low = k.min(low, loaded.back());
    high = k.max(high, loaded.back());
  }
  Value most = k.maxLanes(high), least = k.neg(k.maxLanes(k.neg(low)));
  Value magnitude = k.max(most, k.neg(least));
  Value scale = wide ? k.mul(magnitude, k.constFloat(k.f32(), 1.0 / 127))
                     : k.mul(k.select(k.less(most, k.neg(least)), least, most),
                             k.constFloat(k.f32(), -1.0 / 8));
  Value bits = k.floatToHalf(scale);
  Value rounded = k.halfToFloat(bits);
  Value zero = k.zero(k.f32());
  Value inverse = k.div(k.constFloat(k.f32(), 1.0), rounded);
  inverse = k.splat(k.select(k.equal(rounded, zero), zero, inverse), lanes);
  // A tiny scale is rounded so coarsely that codes could leave their range.
  double floor = wide ? -127 : -8, ceiling = wide ? 127 : 7;
  llvm::SmallVector<Value> whole;
  for (Value v : loaded) {
    Value scaled = k.max(k.mul(v, inverse), k.constFloat(floats, floor));
    Value code = k.roundToInt(k.min(scaled, k.constFloat(floats, ceiling)));
    whole.push_back(wide ? code : k.add(code, 8));
  }
  size_t count = wide ? whole.size() : whole.size() / 2;
  for (size_t i = 0; i < count; ++i) {
    Value code = wide ? whole[i] : k.orBits(whole[i], k.shl(whole[i + count], 4));
    k.store(k.truncate(code, k.i8()), k.at(codes, int64_t(i) * lanes), 1);
  }
  return bits;
}

void KvWriter::storeKeyBlock(Value block, Value scale) {
  Value offset = k.mul(k.rem(token, KvLayout::kLanes), 2);
  k.store(scale, k.at(block, offset), 2);
  Value to = k.at(k.at(block, 2 * KvLayout::kLanes), offset);
  int64_t rows = KvLayout::kBlock * layout.bits / 8 / 2;
  for (int64_t i = 0; i < rows; ++i)
    k.store(k.load(k.i16(), k.at(codes, 2 * i), 2), k.at(to, 2 * KvLayout::kLanes * i), 2);
}

void KvWriter::storeValueBlock(Value block, Value scale) {
  k.store(scale, k.at(block, k.mul(token, 2)), 2);
  Value row = k.add(k.mul(k.div(token, 2), 2 * KvLayout::kLanes), k.rem(token, 2));
  Value to = k.at(k.at(block, 2 * layout.page), row);
  for (int64_t i = 0; i < KvLayout::kBlock * layout.bits / 8; ++i) {
    int64_t panel = i / KvLayout::kLanes * KvLayout::kLanes * layout.page;
    k.store(k.load(k.i8(), k.at(codes, i), 1), k.at(to, panel + 2 * (i % KvLayout::kLanes)), 1);
  }
}

} // namespace izhc
