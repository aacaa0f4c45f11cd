// Bits by their place in the block, and entries from a table in memory.

#include "compiler/target/GridCode.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace izhc {

using namespace mlir;

Value GridCode::element(FieldRole role, Value unit, Value lane, Value index) {
  Value result;
  for (const BitField &field : format.fields) {
    if (field.role != role)
      continue;
    Value bit = k.mul(k.div(index, field.count), field.repeatStride);
    bit = k.add(k.add(bit, k.mul(k.rem(index, field.count), field.bitStride)),
                int64_t(field.firstBit) - 8 * layout.firstWordByte);
    Value at = k.add(k.mul(k.div(bit, 32), 64), k.mul(lane, 4));
    Value word = k.load(k.i32(), k.at(k.at(unit, layout.headBytes), at), 4);
    Value value =
        arith::ShRUIOp::create(k.builder, k.loc, word, k.truncate(k.rem(bit, 32), k.i32()));
    value = k.shl(k.andBits(value, (int64_t(1) << field.width) - 1), field.shift);
    result = result ? k.orBits(result, value) : value;
  }
  return result;
}

// Weights of three values, five in a byte.
Value GridCode::ternary(Value unit, Value lane, Value weight) {
  // In each of the three parts: which byte, and which place in it.
  Value byte, place;
  auto part = [&](int64_t first, int64_t count, int64_t firstByte) {
    Value own = k.add(weight, -first);
    Value behind = k.lessEqual(k.constI64(first), weight);
    Value b = k.add(k.rem(own, count), firstByte), p = k.div(own, count);
    byte = byte ? k.select(behind, b, byte) : b;
    place = place ? k.select(behind, p, place) : p;
  };
  part(0, 32, 0);
  part(160, 16, 32);
  part(240, 4, 48);
  static constexpr uint8_t kPowers[8] = {1, 3, 9, 27, 81};
  Value rest = element(FieldRole::Index, unit, lane, byte);
  Value power = k.extendU(k.load(k.i8(), k.at(k.table(kPowers), place), 1), k.i32());
  rest = k.andBits(k.mul(rest, power), 255);
  return k.shrU(k.mul(rest, 3), 8);
}

Value GridCode::code(Value unit, Value lane, Value weight) {
  if (grid.isTernary())
    return k.add(ternary(unit, lane, weight), -int64_t(format.zeroPoint));
  auto of = [&](FieldRole role, int64_t weights) {
    return element(role, unit, lane, k.div(weight, weights));
  };
  llvm::SmallVector<uint8_t> bytes;
  uint32_t bits = 16 / grid.groupWeights;
  for (uint16_t entry : grid.entries)
    for (uint32_t j = 0; j < grid.groupWeights; ++j)
      bytes.push_back(uint8_t(grid.values[entry >> bits * j & ((1u << bits) - 1)]));
  Value index = k.extendU(of(FieldRole::Index, grid.groupWeights), k.i64());
  Value at = k.add(k.mul(index, grid.groupWeights), k.rem(weight, grid.groupWeights));
  Value code = k.extendS(k.load(k.i8(), k.at(k.table(bytes), at), 1), k.i32());
  code = k.mul(code, grid.multiplier);
  Value one = k.constInt(k.i32(), 1);
  if (grid.signBits) {
    Value signs = of(FieldRole::Sign, 8);
    if (grid.signBits == 7) {
      Value odd = k.zero(k.i32());
      for (int64_t bit = 0; bit < 7; ++bit)
        odd = k.add(odd, k.andBits(k.shrU(signs, bit), 1));
      signs = k.orBits(signs, k.shl(k.andBits(odd, 1), 7));
    }
    Value which = k.truncate(k.rem(weight, 8), k.i32());
    Value bit = k.andBits(arith::ShRUIOp::create(k.builder, k.loc, signs, which), 1);
    code = k.mul(code, k.sub(one, k.mul(bit, 2)));
  }
  if (grid.deltaWeights)
    code = k.add(code, k.sub(one, k.mul(of(FieldRole::Delta, grid.deltaWeights), 2)));
  return code;
}

} // namespace izhc
