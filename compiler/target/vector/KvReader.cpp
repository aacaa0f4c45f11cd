// The layouts keep pairs together, so that reading is conversion only.

#include "compiler/target/vector/KvReader.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace izhc {

using namespace mlir;
using pack::KvLayout;

// float32 vectors of a row.
static int64_t floatVectors(const PairForm &form) { return 2 * KvLayout::kLanes / form.lanes; }

void KvReader::storeRow(ArrayRef<Value> floats, Value to) {
  int64_t bytes = form.lanes * (form.isNarrow() ? 2 : 4);
  for (size_t i = 0; i < floats.size(); ++i) {
    Value value = floats[i];
    if (form.isNarrow())
      value = arith::TruncFOp::create(k.builder, k.loc, k.vec(form.lanes, form.element(k)), value);
    k.store(value, k.at(to, int64_t(i) * bytes), bytes);
  }
}

void KvReader::halfRows(Value from, Value begin, Value end, Value to) {
  constexpr int64_t kRow = 4 * KvLayout::kLanes;
  Type bits = k.vec(form.lanes, k.i16());
  k.loop(begin, end, 1, [&](Value row) {
    Value line = k.at(from, k.mul(row, kRow));
    Values floats;
    for (int64_t i = 0; i < floatVectors(form); ++i)
      floats.push_back(k.halfToFloat(k.load(bits, k.at(line, 2 * form.lanes * i), 2)));
    storeRow(floats, k.at(to, k.mul(row, form.rowBytes())));
  });
}

void KvReader::codeRows(Value from, ArrayRef<Value> scales, Value low, Value high) {
  Values lows, highs;
  for (int64_t i = 0; i < floatVectors(form); ++i) {
    Value bytes = k.load(k.vec(form.lanes, k.i8()), k.at(from, form.lanes * i), 1);
    auto scaled = [&](Value code) { return k.mul(k.intToFloat(code), scales[i]); };
    if (layout.bits == 8) {
      lows.push_back(scaled(k.extendS(bytes, k.i32())));
      continue;
    }
    Value wide = k.extendU(bytes, k.i32());
    lows.push_back(scaled(k.add(k.andBits(wide, 15), -8)));
    highs.push_back(scaled(k.add(k.shrU(wide, 4), -8)));
  }
  storeRow(lows, low);
  if (high)
    storeRow(highs, high);
}

// The scales of 16 tokens, each twice.
KvReader::Values KvReader::keyScales(Value from) {
  SmallVector<int64_t> twice;
  for (int64_t i = 0; i < form.lanes; ++i)
    twice.push_back(i / 2);
  Values scales;
  int64_t half = form.lanes / 2;
  for (int64_t i = 0; i < floatVectors(form); ++i) {
    Value some = k.halfToFloat(k.load(k.vec(half, k.i16()), k.at(from, 2 * half * i), 2));
    scales.push_back(k.shuffle(some, some, twice));
  }
  return scales;
}

void KvReader::keyBlock(Value from, Value to) {
  Values scales = keyScales(from);
  bool packed = layout.bits == 4;
  int64_t rows = KvLayout::kBlock / 2 / (packed ? 2 : 1);
  k.loop(k.constI64(0), k.constI64(rows), 1, [&](Value row) {
    Value codes = k.at(k.at(from, 2 * KvLayout::kLanes), k.mul(row, 2 * KvLayout::kLanes));
    Value low = k.at(to, k.mul(row, form.rowBytes()));
    codeRows(codes, scales, low, packed ? k.at(low, rows * form.rowBytes()) : Value());
  });
}

void KvReader::keyPanel(Value from, Value to) {
  if (!blocks)
    return halfRows(from, k.constI64(0), k.constI64(layout.keyPairs), to);
  int64_t count = layout.keyPanelBytes / layout.keyBlockBytes();
  k.loop(k.constI64(0), k.constI64(count), 1, [&](Value block) {
    keyBlock(k.at(from, k.mul(block, layout.keyBlockBytes())),
             k.at(to, k.mul(block, KvLayout::kBlock / 2 * form.rowBytes())));
  });
}

void KvReader::valuePanels(Value from, Value begin, Value end, Value to, int64_t panelStride) {
  if (!blocks)
    return halfRows(from, begin, end, to);
  SmallVector<int64_t> inTurns;
  for (int64_t i = 0; i < form.lanes; ++i)
    inTurns.push_back(i % 2);
  k.loop(begin, end, 1, [&](Value row) {
    Value two = k.halfToFloat(k.load(k.vec(2, k.i16()), k.at(from, k.mul(row, 4)), 2));
    Values scales(floatVectors(form), k.shuffle(two, two, inTurns));
    Value codes = k.at(k.at(from, 2 * layout.page), k.mul(row, 2 * KvLayout::kLanes));
    Value low = k.at(to, k.mul(row, form.rowBytes())), high = k.at(low, panelStride);
    if (layout.bits == 4)
      return codeRows(codes, scales, low, high);
    codeRows(codes, scales, low, Value());
    codeRows(k.at(codes, KvLayout::kLanes * layout.page), scales, high, Value());
  });
}

} // namespace izhc
