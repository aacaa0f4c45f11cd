// One value at a time, addresses worked out for each.

#include "targets/reference/codegen/KvCells.h"
#include "targets/reference/codegen/Lowering.h"
#include <cmath>

namespace izhc::reference {

using namespace mlir;
using pack::KvLayout;

KvCells::Cell KvCells::keyCell(Value page, Value head, Value token, Value i) {
  Value lane = k.mul(k.rem(token, KvLayout::kLanes), 2);
  Value panel = k.at(page, k.add(k.mul(head, layout.keyHeadBytes),
                                 k.mul(k.div(token, KvLayout::kLanes), layout.keyPanelBytes)));
  if (layout.bits == 16) {
    Value number = k.add(k.mul(k.div(i, 2), 2 * KvLayout::kLanes), k.add(lane, k.rem(i, 2)));
    return {k.at(panel, k.mul(number, 2)), {}, {}, {}};
  }
  Value block = k.at(panel, k.mul(k.div(i, KvLayout::kBlock), layout.keyBlockBytes()));
  Value inBlock = k.rem(i, KvLayout::kBlock);
  // 8 bits: 32 values follow each other; 4 bits: 16 do, twice.
  Value inRun = layout.bits == 8 ? inBlock : k.rem(inBlock, 16);
  Value number = k.add(k.mul(k.div(inRun, 2), 2 * KvLayout::kLanes), k.add(lane, k.rem(i, 2)));
  return {{},
          k.at(block, lane),
          k.at(k.at(block, 2 * KvLayout::kLanes), number),
          k.lessEqual(k.constI64(16), inBlock)};
}

KvCells::Cell KvCells::valueCell(Value page, Value head, Value token, Value i) {
  Value all = k.at(k.at(page, layout.valuesOffset), k.mul(head, layout.valueHeadBytes));
  Value column = k.rem(i, KvLayout::kLanes), odd = k.rem(token, 2);
  Value number = k.add(k.mul(k.div(token, 2), 2 * KvLayout::kLanes), k.add(k.mul(column, 2), odd));
  if (layout.bits == 16) {
    Value panel = k.at(all, k.mul(k.div(i, KvLayout::kLanes), layout.valuePanelBytes));
    return {k.at(panel, k.mul(number, 2)), {}, {}, {}};
  }
  Value block = k.at(all, k.mul(k.div(i, KvLayout::kBlock), layout.valuePanelBytes));
  Value second = k.div(k.rem(i, KvLayout::kBlock), KvLayout::kLanes);
  Value codes = k.at(block, 2 * layout.page);
  if (layout.bits == 8)
    codes = k.at(codes, k.mul(second, KvLayout::kLanes * layout.page));
  return {{}, k.at(block, k.mul(token, 2)), k.at(codes, number), k.equal(second, k.constI64(1))};
}

Value KvCells::read(const Cell &cell) {
  if (cell.half)
    return k.halfToFloat(k.load(k.i16(), cell.half, 2));
  Value scale = k.halfToFloat(k.load(k.i16(), cell.scale, 2));
  Value byte = k.load(k.i8(), cell.code, 1);
  if (layout.bits == 8)
    return k.mul(k.intToFloat(k.extendS(byte, k.i32())), scale);
  Value wide = k.extendU(byte, k.i32());
  Value code = k.select(cell.high, k.shrU(wide, 4), k.andBits(wide, 15));
  return k.mul(k.intToFloat(k.add(code, -8)), scale);
}

void KvCells::storeKey(Value page, Value head, Value token, Value values) {
  store(values, type.getDim(), [&](Value i) { return keyCell(page, head, token, i); });
  if (type.getDim() % 2)
    k.store(k.zero(k.i16()), keyCell(page, head, token, k.constI64(type.getDim())).half, 2);
}

void KvCells::storeValue(Value page, Value head, Value token, Value values) {
  store(values, type.getValueDim(), [&](Value i) { return valueCell(page, head, token, i); });
}

void KvCells::store(Value values, int64_t count, function_ref<Cell(Value i)> cellOf) {
  if (layout.bits == 16)
    return k.loop(k.constI64(0), k.constI64(count), 1, [&](Value i) {
      k.store(k.floatToHalf(loadFloat(k, values, i)), cellOf(i).half, 2);
    });
  turn(values, count);
  k.loop(k.constI64(0), k.constI64(count), KvLayout::kBlock,
         [&](Value first) { storeBlock(values, first, cellOf); });
}

void KvCells::storeBlock(Value values, Value first, function_ref<Cell(Value i)> cellOf) {
  Value zero = k.zero(k.f32()), end = k.add(first, KvLayout::kBlock);
  // The value of largest magnitude; of two equal ones the positive.
  Value most = k.loop(first, end, k.constI64(1), {zero}, [&](Value i, ArrayRef<Value> carried) {
    Value v = loadFloat(k, values, i), best = carried[0];
    Value larger = k.less(k.abs(best), k.abs(v));
    Value tie = k.andBits(k.equal(k.abs(best), k.abs(v)), k.less(best, v));
    return KernelBuilder::Values{k.select(k.orBits(larger, tie), v, best)};
  })[0];
  bool wide = layout.bits == 8;
  Value exact = wide ? k.mul(k.abs(most), k.constFloat(k.f32(), 1.0 / 127))
                     : k.mul(most, k.constFloat(k.f32(), -1.0 / 8));
  Value bits = k.floatToHalf(exact), scale = k.halfToFloat(bits);
  Value inverse = k.select(k.equal(scale, zero), zero, k.div(k.constFloat(k.f32(), 1.0), scale));
  double floor = wide ? -127 : -8, ceiling = wide ? 127 : 7;
  k.loop(first, end, 1, [&](Value i) {
    Cell cell = cellOf(i);
    k.store(bits, cell.scale, 2);
    Value scaled = k.max(k.mul(loadFloat(k, values, i), inverse), k.constFloat(k.f32(), floor));
    Value code = k.roundToInt(k.min(scaled, k.constFloat(k.f32(), ceiling)));
    if (wide)
      return k.store(k.truncate(code, k.i8()), cell.code, 1);
    code = k.add(code, 8);
    Value old = k.extendU(k.load(k.i8(), cell.code, 1), k.i32());
    Value low = k.orBits(k.andBits(old, 0xf0), code);
    Value high = k.orBits(k.andBits(old, 0x0f), k.shl(code, 4));
    k.store(k.truncate(k.select(cell.high, high, low), k.i8()), cell.code, 1);
  });
}

// Row by column, H[i][j] = (-1)^(number of common bits of i and j) / sqrt(n).
void multiplyHadamard(KernelBuilder &k, Value values, int64_t count) {
  int64_t n = count & -count;
  Value copy = k.stack(4 * count);
  Value scale = k.constFloat(k.f32(), 1 / std::sqrt(double(n)));
  k.loop(k.constI64(0), k.constI64(count), 1,
         [&](Value i) { storeFloat(k, loadFloat(k, values, i), copy, i); });
  k.loop(k.constI64(0), k.constI64(count), 1, [&](Value i) {
    Value run = k.mul(k.div(i, n), n), row = k.rem(i, n);
    Value total = sum(k, k.f32(), k.constI64(n), [&](Value j) {
      Value common = k.andBits(row, j), parity = k.constI64(0);
      for (int64_t bit = 0; bit < 16; ++bit)
        parity = k.add(parity, k.andBits(k.shrU(common, bit), 1));
      Value v = loadFloat(k, copy, k.add(run, j));
      return k.select(k.equal(k.rem(parity, 2), k.constI64(1)), k.neg(v), v);
    });
    storeFloat(k, k.mul(total, scale), values, i);
  });
}

} // namespace izhc::reference
