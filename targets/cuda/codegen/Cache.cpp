// Addresses, codes and the Hadamard matrix of caches.

#include "targets/cuda/codegen/Cache.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "targets/cuda/codegen/Lowering.h"
#include "targets/cuda/codegen/TensorCore.h"
#include <cmath>

namespace izhc::cuda {

using namespace mlir;
using pack::KvLayout;

Cache::Cell Cache::keyCell(Value page, Value head, Value token, Value i) {
  Value lane = k.mul(k.rem(token, KvLayout::kLanes), 2);
  Value panel = k.at(page, k.add(k.mul(head, layout.keyHeadBytes),
                                 k.mul(k.div(token, KvLayout::kLanes), layout.keyPanelBytes)));
  auto number = [&](Value inRun) {
    return k.add(k.mul(k.div(inRun, 2), 2 * KvLayout::kLanes), k.add(lane, k.rem(inRun, 2)));
  };
  if (layout.bits == 16)
    return {k.at(panel, k.mul(number(i), 2)), {}, {}, {}};
  Value start = k.at(panel, k.mul(k.div(i, KvLayout::kBlock), layout.keyBlockBytes()));
  Value inBlock = k.rem(i, KvLayout::kBlock);
  // 8 bits: the block's 32 values follow each other; 4 bits: 16 and 16 share bytes.
  Value inRun = layout.bits == 8 ? inBlock : k.rem(inBlock, 16);
  return {{},
          k.at(start, lane),
          k.at(k.at(start, 2 * KvLayout::kLanes), number(inRun)),
          k.lessEqual(k.constI64(16), inBlock)};
}

Cache::Cell Cache::valueCell(Value page, Value head, Value token, Value i) {
  Value all = k.at(k.at(page, layout.valuesOffset), k.mul(head, layout.valueHeadBytes));
  Value column = k.mul(k.rem(i, KvLayout::kLanes), 2);
  Value number =
      k.add(k.mul(k.div(token, 2), 2 * KvLayout::kLanes), k.add(column, k.rem(token, 2)));
  if (layout.bits == 16) {
    Value panel = k.at(all, k.mul(k.div(i, KvLayout::kLanes), layout.valuePanelBytes));
    return {k.at(panel, k.mul(number, 2)), {}, {}, {}};
  }
  Value start = k.at(all, k.mul(k.div(i, KvLayout::kBlock), layout.valuePanelBytes));
  Value second = k.div(k.rem(i, KvLayout::kBlock), KvLayout::kLanes);
  Value codes = k.at(start, 2 * layout.page);
  if (layout.bits == 8)
    codes = k.at(codes, k.mul(second, KvLayout::kLanes * layout.page));
  return {{}, k.at(start, k.mul(token, 2)), k.at(codes, number), k.equal(second, k.constI64(1))};
}

Value Cache::read(const Cell &cell) {
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

std::pair<Value, Value> Cache::readWord(Value address) {
  return unpackHalves(k, k.load(k.i32(), address, 4));
}

std::pair<Value, Value> Cache::keyPair(Value page, Value head, Value token, Value i) {
  if (layout.bits == 16)
    return readWord(keyCell(page, head, token, i).half);
  return {key(page, head, token, i), key(page, head, token, k.add(i, 1))};
}

std::pair<Value, Value> Cache::valuePair(Value page, Value head, Value token, Value i) {
  if (layout.bits == 16)
    return readWord(valueCell(page, head, token, i).half);
  return {value(page, head, token, i), value(page, head, k.add(token, 1), i)};
}

void Cache::store(bool isKey, Value base, Value head, Value slot, Value values) {
  Value inPage = k.rem(slot, layout.page), to = page(base, k.div(slot, layout.page));
  int64_t count = isKey ? type.getDim() : type.getValueDim();
  auto cellOf = [&](Value i) {
    return isKey ? keyCell(to, head, inPage, i) : valueCell(to, head, inPage, i);
  };
  if (layout.bits != 16) {
    // Whole blocks of 32: each lane has one value of a block.
    for (int64_t first = 0; first < count; first += kWarp) {
      Value i = k.add(block.lane, first);
      storeBlock(turned(values, count, i), cellOf(i));
    }
    return;
  }
  block.forLanes(
      count, [&](Value i) { k.store(k.floatToHalf(loadFloat(k, values, i)), cellOf(i).half, 2); });
  if (isKey && count % 2)
    k.ifThen(k.equal(block.lane, k.constI64(0)),
             [&] { k.store(k.zero(k.i16()), cellOf(k.constI64(count)).half, 2); });
}

// The block's 32 values `v`, one a lane.
void Cache::storeBlock(Value v, const Cell &cell) {
  Value most = v;
  // The value of largest magnitude; of two equal ones the positive.
  for (int64_t mask = kWarp / 2; mask; mask /= 2) {
    Value other = block.exchange(most, mask);
    Value larger = k.less(k.abs(most), k.abs(other));
    Value tie = k.andBits(k.equal(k.abs(most), k.abs(other)), k.less(most, other));
    most = k.select(k.orBits(larger, tie), other, most);
  }
  bool wide = layout.bits == 8;
  Value exact = wide ? k.mul(k.abs(most), k.constFloat(k.f32(), 1.0 / 127))
                     : k.mul(most, k.constFloat(k.f32(), -1.0 / 8));
  Value bits = k.floatToHalf(exact), scale = k.halfToFloat(bits), zero = k.zero(k.f32());
  Value inverse = k.select(k.equal(scale, zero), zero, k.div(k.constFloat(k.f32(), 1.0), scale));
  Value scaled = k.max(k.mul(v, inverse), k.constFloat(k.f32(), wide ? -127 : -8));
  Value code = block.roundToInt(k.min(scaled, k.constFloat(k.f32(), wide ? 127 : 7)));
  k.store(bits, cell.scale, 2);
  if (wide)
    return k.store(k.truncate(code, k.i8()), cell.code, 1);
  // Values i and i + 16 share a byte.
  code = k.add(code, 8);
  Value both = k.orBits(code, k.shl(block.exchange(code, 16), 4));
  k.ifThen(k.less(block.lane, k.constI64(16)),
           [&] { k.store(k.truncate(both, k.i8()), cell.code, 1); });
}

// Row by column, H[i][j] = (-1)^(number of common bits of i and j) / sqrt(n).
Value hadamardOf(KernelBuilder &k, Value values, int64_t count, Value i) {
  int64_t n = count & -count;
  Value run = k.mul(k.div(i, n), n), row = k.truncate(k.rem(i, n), k.i32());
  Value total = k.loop(k.constI64(0), k.constI64(n), k.constI64(1), {k.zero(k.f32())},
                       [&](Value j, ArrayRef<Value> carried) {
                         Value v = loadFloat(k, values, k.add(run, j));
                         Value common = k.andBits(row, k.truncate(j, k.i32()));
                         Value ones = math::CtPopOp::create(k.builder, k.loc, common);
                         Value sign = k.shl(ones, 31);
                         Value bits = k.bitcast(v, k.i32());
                         bits = k.sub(k.orBits(bits, sign), k.andBits(bits, sign));
                         return Block::Values{k.add(carried[0], k.bitcast(bits, k.f32()))};
                       })[0];
  return k.mul(total, k.constFloat(k.f32(), 1 / std::sqrt(double(n))));
}

Value Cache::turned(Value values, int64_t count, Value i) {
  return type.isTurned() ? hadamardOf(k, values, count, i) : loadFloat(k, values, i);
}

LogicalResult emitHadamard(Block &block, pack::HadamardOp op) {
  KernelBuilder &k = block.k;
  int64_t dim = op.getHeadDim();
  Value input = block.rowOf(op.getInput(), block.unit), out = block.rowOf(op.getInto(), block.unit);
  block.forThreads(Block::widthOf(op.getInto()), [&](Value at) {
    Value head = k.mul(k.div(at, dim), 4 * dim);
    storeFloat(k, hadamardOf(k, k.at(input, head), dim, k.rem(at, dim)), out, at);
  });
  return success();
}

// A warp for each head of keys and of values.
LogicalResult emitAppend(Block &block, pack::AppendOp op) {
  KernelBuilder &k = block.k;
  auto type = cast<pack::KvType>(op.getInto().getType());
  Cache cache(block, type);
  Value slot = loadIndex(k, block.address(op.getSlots()), block.unit);
  k.loop(block.warp, k.constI64(type.getHeads()), block.warps(), [&](Value head) {
    Value key = k.at(block.rowOf(op.getKeys(), block.unit), k.mul(head, 4 * type.getDim()));
    Value value =
        k.at(block.rowOf(op.getValues(), block.unit), k.mul(head, 4 * type.getValueDim()));
    cache.store(/*isKey=*/true, block.address(op.getInto()), head, slot, key);
    cache.store(/*isKey=*/false, block.address(op.getInto()), head, slot, value);
  });
  return success();
}

} // namespace izhc::cuda
