// Formats whose weights are chosen in groups: their blocks lie as words, one
// row a lane. A unit is expanded to one byte a weight, in the scratch, which
// products then read as they read any codes.

#include "compiler/target/vector/WeightReader.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace izhc {

using namespace mlir;

Value WeightReader::wordAt(Value bytes, Value word) {
  Value at = k.at(k.at(bytes, layout.headBytes), k.mul(word, 64));
  return k.load(k.vec(lanes, k.i32()), at, alignOf(4 * lanes));
}

// Element block * (elements for 32 weights) + index of a role. Fields of one
// element each 32 weights, or of several, repeat once for 32 weights.
Value WeightReader::element(FieldRole role, Value bytes, Value block, int64_t index) {
  Value result;
  for (const BitField &field : spec.fields) {
    if (field.role != role)
      continue;
    int64_t first = field.firstBit + index * field.bitStride - 8 * layout.firstWordByte;
    Value bit = k.add(k.mul(block, field.repeatStride), first);
    Value value = wordAt(bytes, k.div(bit, 32));
    // Where repetitions are words apart, the shift is the same in all.
    if (field.repeatStride % 32 == 0) {
      value = k.shrU(value, first % 32);
    } else {
      Value by = k.splat(k.truncate(k.rem(bit, 32), k.i32()), lanes);
      value = arith::ShRUIOp::create(k.builder, k.loc, value, by);
    }
    value = k.shl(k.andBits(value, (int64_t(1) << field.width) - 1), field.shift);
    result = result ? k.orBits(result, value) : value;
  }
  return result;
}

// Element `index` of a role, whatever the shape of its fields.
Value WeightReader::staticElement(FieldRole role, Value bytes, int64_t index) {
  Value result;
  for (const BitField &field : spec.fields) {
    int64_t own = index - field.firstElement;
    if (field.role != role || own < 0 || own >= int64_t(field.count) * field.repeats)
      continue;
    int64_t bit = field.firstBit + own / field.count * field.repeatStride +
                  own % field.count * field.bitStride - 8 * layout.firstWordByte;
    Value value = k.shrU(wordAt(bytes, k.constI64(bit / 32)), bit % 32);
    value = k.shl(k.andBits(value, (int64_t(1) << field.width) - 1), field.shift);
    result = result ? k.orBits(result, value) : value;
  }
  return result;
}

// Sub-scales as the bytes of one dword a chunk.
void WeightReader::unpackWords(Value bytes, Value scratch) {
  int64_t inChunk = 64 / spec.subWeights;
  for (int64_t q = 0; q < 4; ++q) {
    Value dword;
    for (int64_t j = 0; j < inChunk; ++j) {
      Value sub = k.shl(staticElement(FieldRole::Sub, bytes, q * inChunk + j), 8 * j);
      dword = dword ? k.orBits(dword, sub) : sub;
    }
    k.store(dword, k.at(scratch, 64 * q), unsigned(4 * lanes));
  }
}

// The entries of a grid as codes of a byte, before signs and deltas.
static llvm::SmallVector<uint8_t> tableOf(const FormatSpec &spec) {
  const Grid &grid = *spec.grid;
  uint32_t bits = 16 / grid.groupWeights;
  // What has no sign is stored with the zero point, and one more where a delta
  // is to be taken off.
  int32_t base = grid.signBits ? 0 : spec.zeroPoint + (grid.deltaWeights ? 1 : 0);
  llvm::SmallVector<uint8_t> table;
  for (uint16_t entry : grid.entries)
    for (uint32_t i = 0; i < grid.groupWeights; ++i)
      table.push_back(
          uint8_t(grid.values[entry >> bits * i & ((1u << bits) - 1)] * grid.multiplier + base));
  return table;
}

// Codes of four weights: negative where the lowest four bits of a lane say so,
// plus the zero point.
Value WeightReader::negated(Value codes, Value signs) {
  Type bytes = k.vec(4 * lanes, k.i8());
  Value four = k.andBits(signs, 15);
  // Bit c moves to bit 8c.
  Value spread =
      k.orBits(k.orBits(four, k.shl(four, 7)), k.orBits(k.shl(four, 14), k.shl(four, 21)));
  Value mask = k.sub(k.zero(bytes), k.bitcast(k.andBits(spread, 0x01010101), bytes));
  Value flipped = arith::XOrIOp::create(k.builder, k.loc, codes, mask);
  return k.add(k.sub(flipped, mask), spec.zeroPoint);
}

// Eight weights.
void WeightReader::expandGroup(Value bytes, Value block, int64_t group, Value table, Value to) {
  const Grid &grid = *spec.grid;
  Type type = k.vec(4 * lanes, k.i8());
  Value signs, delta;
  if (grid.signBits) {
    signs = element(FieldRole::Sign, bytes, block, group);
    if (grid.signBits == 7) {
      auto folded = [&](Value v, int64_t by) -> Value {
        return arith::XOrIOp::create(k.builder, k.loc, v, k.shrU(v, by));
      };
      Value odd = k.andBits(folded(folded(folded(signs, 4), 2), 1), 1);
      signs = k.orBits(signs, k.shl(odd, 7));
    }
  }
  if (grid.deltaWeights) {
    delta = element(FieldRole::Delta, bytes, block, grid.deltaWeights == 8 ? group : 0);
    delta = k.bitcast(k.andBits(k.sub(k.zero(delta.getType()), delta), 0x02020202), type);
  }
  int64_t indices = 8 / grid.groupWeights;
  Value index;
  for (int64_t half : {0, 1}) {
    if (half < indices)
      index = element(FieldRole::Index, bytes, block, indices * group + half);
    Value offset = k.add(k.mul(index, grid.groupWeights), indices == 1 ? 4 * half : 0);
    Value codes = k.bitcast(k.gather(table, offset), type);
    if (signs)
      codes = negated(codes, k.shrU(signs, 4 * half));
    if (delta)
      codes = k.sub(codes, delta);
    k.store(codes, k.at(to, 64 * (2 * group + half)), unsigned(4 * lanes));
  }
}

// Places of a byte one after the other; 16-bit lanes, as there are no products
// of bytes.
void WeightReader::expandTernary(Value bytes, Value scratch) {
  auto expand = [&](int64_t firstWord, int64_t count, int64_t places, int64_t firstWeight) {
    k.loop(k.constI64(0), k.constI64(count), 1, [&](Value i) {
      Value words = k.bitcast(wordAt(bytes, k.add(i, firstWord)), k.vec(2 * lanes, k.i16()));
      Value even = k.andBits(words, 255), odd = k.shrU(words, 8);
      Value to = k.at(k.at(scratch, k.mul(i, 64)), 16 * firstWeight);
      for (int64_t place = 0; place < places; ++place) {
        even = k.mul(even, k.constInt(even.getType(), 3));
        odd = k.mul(odd, k.constInt(odd.getType(), 3));
        Value digits = k.orBits(k.shrU(even, 8), k.andBits(odd, 0xff00));
        k.store(digits, k.at(to, 64 * count * place), unsigned(4 * lanes));
        even = k.andBits(even, 255);
        odd = k.andBits(odd, 255);
      }
    });
  };
  expand(0, 8, 5, 0);
  expand(8, 4, 5, 160);
  expand(12, 1, 4, 240);
}

void WeightReader::expandCodes(Value bytes, Value scratch) {
  Value codes = k.at(scratch, kCodesInScratch);
  if (spec.grid->isTernary())
    return expandTernary(bytes, codes);
  Value table = k.table(tableOf(spec));
  k.loop(k.constI64(0), k.constI64(8), 1, [&](Value block) {
    Value to = k.at(codes, k.mul(block, 8 * 64));
    for (int64_t group = 0; group < 4; ++group)
      expandGroup(bytes, block, group, table, to);
  });
}

} // namespace izhc
