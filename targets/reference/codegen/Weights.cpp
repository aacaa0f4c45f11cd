// Addresses and bits of single weights, and the product of one row with one
// record of activations.

#include "targets/reference/codegen/Weights.h"
#include "compiler/target/GridCode.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "targets/reference/codegen/Lowering.h"

namespace izhc::reference {

using namespace mlir;

constexpr int64_t kChunk = 64;

std::optional<Weights> Weights::of(Operation *op, KernelBuilder &k, Type type) {
  auto weight = cast<pack::WeightType>(type);
  const FormatSpec *format = findFormat(weight.getFormat().getValue());
  if (!format) {
    op->emitError("reads weights of the unknown format '") << weight.getFormat().getValue() << "'";
    return std::nullopt;
  }
  return Weights(k, *format, weight.getCols());
}

Weights::Row Weights::row(Value base, Value index) const {
  Value tile = k.div(index, PackedLayout::kTileRows);
  return {k.at(base, k.mul(tile, layout.tileBytes(cols))), k.rem(index, PackedLayout::kTileRows)};
}

Value Weights::floatWeight(const Row &row, Value index) const {
  int64_t bytes = layout.unitBytes / PackedLayout::kTileRows;
  Value at = k.at(row.tile, k.add(k.mul(index, layout.unitBytes), k.mul(row.lane, bytes)));
  if (format.kind == ElementKind::F32)
    return k.load(k.f32(), at, 4);
  Value bits = k.load(k.i16(), at, 2);
  if (format.kind == ElementKind::F16)
    return k.halfToFloat(bits);
  return k.bitcast(k.shl(k.extendU(bits, k.i32()), 16), k.f32());
}

Weights::Run Weights::run(const Row &row, Value index) const {
  Run run;
  run.first = k.mul(index, runWeights());
  run.lane = row.lane;
  Value inUnit = k.rem(run.first, layout.unitWeights);
  Value unit = k.at(row.tile, k.mul(k.div(run.first, layout.unitWeights), layout.unitBytes));

  run.unit = unit;
  run.inUnit = inUnit;
  // The scales of a unit's second block lie behind those of its first.
  auto half = [&](int64_t first, int64_t second) {
    Value block = k.div(inUnit, format.blockWeights);
    Value at = k.add(k.mul(block, second - first), k.mul(row.lane, 2));
    return k.halfToFloat(k.load(k.i16(), k.at(k.at(unit, first), at), 2));
  };
  int64_t last = layout.unitWeights - format.blockWeights;
  switch (format.scaleKind) {
  case ScaleKind::Half:
    if (format.grid && !layout.headBytes)
      run.scale = k.halfToFloat(k.truncate(
          GridCode(k, layout).element(FieldRole::Scale, unit, row.lane, k.constI64(0)), k.i16()));
    else
      run.scale = half(layout.scaleOffset(0), layout.scaleOffset(last));
    break;
  case ScaleKind::PowerOfTwo: {
    Value at = k.add(k.mul(row.lane, 2), k.div(inUnit, format.blockWeights));
    Value byte = k.extendU(k.load(k.i8(), k.at(unit, at), 1), k.i32());
    run.scale = k.bitcast(k.shl(byte, 23), k.f32());
    break;
  }
  case ScaleKind::PerSub: {
    Value at = k.add(k.mul(row.lane, 4), k.div(inUnit, runWeights()));
    Value byte = k.extendU(k.load(k.i8(), k.at(unit, at), 1), k.i32());
    Value bits = k.truncate(k.shl(k.andBits(byte, 127), 7), k.i16());
    run.scale = k.mul(k.halfToFloat(bits), k.constFloat(k.f32(), 256.0));
    break;
  }
  }
  if (format.factor != 1)
    run.scale = k.mul(run.scale, k.constFloat(k.f32(), format.factor));
  if (format.hasMin)
    run.min = half(layout.minOffset(0), layout.minOffset(last));

  Value chunkNumber = k.div(inUnit, kChunk);
  run.inChunk = k.rem(inUnit, kChunk);
  run.chunk = k.at(unit, k.mul(chunkNumber, layout.chunkBytes));
  readSubScales(run, unit, chunkNumber);
  return run;
}

void Weights::readSubScales(Run &run, Value unit, Value chunkNumber) const {
  if (layout.subs == SubScales::None || format.scaleKind == ScaleKind::PerSub)
    return;
  auto byteAt = [&](Value address, Value j) {
    Value at = k.add(k.mul(run.lane, 4), j);
    return k.extendU(k.load(k.i8(), k.at(address, at), 1), k.i32());
  };
  auto shift = [&](Value bits, Value by) -> Value {
    return arith::ShRUIOp::create(k.builder, k.loc, bits, k.truncate(by, k.i32()));
  };
  Value j = k.div(run.inChunk, runWeights());
  if (layout.subs == SubScales::SixBitPacked) {
    // T_q[j]: four bits in PA (chunks 0, 1) or PB (2, 3), two bits in PH.
    auto sixBits = [&](Value j) {
      Value low =
          byteAt(k.at(k.at(unit, layout.subOffset(0)), k.mul(k.div(chunkNumber, 2), 64)), j);
      low = k.andBits(shift(low, k.mul(k.rem(chunkNumber, 2), 4)), 15);
      Value high = byteAt(k.at(unit, layout.subOffset(0) + 128), j);
      high = k.andBits(shift(high, k.mul(chunkNumber, 2)), 3);
      return k.orBits(low, k.shl(high, 4));
    };
    run.sub = sixBits(j);
    if (format.hasMin)
      run.subMin = sixBits(k.add(j, 2));
  } else if (layout.subs == SubScales::SixBitEight) {
    Value i = k.add(k.mul(chunkNumber, 2), j);
    Value low = k.load(k.i32(), k.at(k.at(unit, layout.subOffset(0)), k.mul(run.lane, 4)), 4);
    Value high = k.load(k.i16(), k.at(k.at(unit, layout.highOffset()), k.mul(run.lane, 2)), 2);
    low = k.andBits(shift(low, k.mul(i, 4)), 15);
    high = k.andBits(shift(k.extendU(high, k.i32()), k.mul(i, 2)), 3);
    run.sub = k.orBits(low, k.shl(high, 4));
  } else if (layout.subs == SubScales::InWords) {
    Value index = k.div(run.inUnit, format.subWeights);
    run.sub =
        k.mul(GridCode(k, layout).element(FieldRole::Sub, unit, run.lane, index), format.subStep);
  } else {
    int64_t stride = layout.subOffset(1) - layout.subOffset(0);
    Value byte = byteAt(k.at(k.at(unit, layout.subOffset(0)), k.mul(chunkNumber, stride)), j);
    run.sub = format.subBits < 8 ? k.andBits(byte, (1 << format.subBits) - 1) : byte;
    if (format.hasMin)
      run.subMin = k.shrU(byte, 4);
  }
  if (format.signedSub) {
    int64_t unused = 32 - format.subBits;
    run.sub = k.shrS(k.shl(run.sub, unused), unused);
  }
  run.sub = k.add(run.sub, -int64_t(format.subZero));
}

Value Weights::code(const Run &run, Value i) const {
  if (format.grid)
    return GridCode(k, layout).code(run.unit, run.lane, k.add(run.inUnit, i));
  Value inChunk = k.add(run.inChunk, i);
  // All planes repeat after the weights that one vector of the widest covers.
  int64_t span = 0;
  for (const CodePlane &plane : layout.planes)
    span = std::max<int64_t>(span, 32 / plane.width);
  Value code = k.zero(k.i32());
  for (auto [p, plane] : llvm::enumerate(layout.planes)) {
    int64_t covers = 32 / plane.width, groups = 8 / plane.width;
    int64_t stride = layout.planeOffset(p, span) - layout.planeOffset(p, 0);
    // Byte 4r + c of a vector holds weights c, 4 + c, 8 + c, ... of row r.
    Value at = k.mul(k.div(inChunk, span), stride);
    at = k.add(at, k.mul(k.div(k.rem(inChunk, span), covers), 64));
    at = k.add(at, k.add(k.mul(run.lane, 4), k.rem(inChunk, 4)));
    Value byte = k.load(k.i8(), k.at(k.at(run.chunk, layout.planeOffset(p, 0)), at), 1);
    if (format.signedCodes && format.codebook.empty()) {
      code = k.extendS(byte, k.i32());
      continue;
    }
    Value group = k.truncate(k.rem(k.div(inChunk, 4), groups), k.i32());
    Value bits = arith::ShRUIOp::create(k.builder, k.loc, k.extendU(byte, k.i32()),
                                        k.mul(group, plane.width));
    bits = k.andBits(bits, (1 << plane.width) - 1);
    code = k.orBits(code, k.shl(bits, plane.shift));
  }
  if (!format.codebook.empty()) {
    Value table = k.table({reinterpret_cast<const uint8_t *>(format.codebook.data()), 16});
    code = k.extendS(k.load(k.i8(), k.at(table, k.extendU(code, k.i64())), 1), k.i32());
  }
  return k.add(code, -int64_t(format.zeroPoint));
}

Value Weights::weight(const Run &run, Value i) const {
  Value scale = run.sub ? k.mul(run.scale, k.intToFloat(run.sub)) : run.scale;
  Value value = k.mul(scale, k.intToFloat(code(run, i)));
  if (!run.min)
    return value;
  Value min = run.subMin ? k.mul(run.min, k.intToFloat(run.subMin)) : run.min;
  return format.subtractMin ? k.sub(value, min) : k.add(value, min);
}

void Weights::forEach(const Row &row, llvm::function_ref<void(Value, Value)> body) const {
  Value zero = k.constI64(0);
  if (isFloat()) {
    k.loop(zero, k.constI64(cols), 1, [&](Value i) { body(i, floatWeight(row, i)); });
    return;
  }
  k.loop(zero, k.constI64(cols / runWeights()), 1, [&](Value index) {
    Run r = run(row, index);
    k.loop(zero, k.constI64(runWeights()), 1,
           [&](Value i) { body(k.add(r.first, i), weight(r, i)); });
  });
}

Value Weights::dotFloats(const Row &row, Value record) const {
  if (isFloat())
    return sum(k, k.f32(), k.constI64(cols),
               [&](Value i) { return k.mul(floatWeight(row, i), loadFloat(k, record, i)); });
  return sum(k, k.f32(), k.constI64(cols / runWeights()), [&](Value index) {
    Run r = run(row, index);
    return sum(k, k.f32(), k.constI64(runWeights()), [&](Value i) {
      return k.mul(weight(r, i), loadFloat(k, record, k.add(r.first, i)));
    });
  });
}

Value Weights::dotCodes(const Row &row, Value record, pack::ActType act) const {
  pack::ActLayout fields(act);
  // What one step of the activations' codes means at weight `first`.
  auto actScale = [&](Value first) {
    if (act.getKind() == pack::ActKind::Block32)
      return loadFloat(k, k.at(record, fields.scales), k.div(first, 32));
    Value step = loadFloat(k, k.at(record, fields.scales), k.div(first, 256));
    Value at = k.at(k.at(record, fields.exponents), k.mul(k.div(first, 32), 4));
    Value power = k.bitcast(k.add(k.load(k.i32(), at, 4), int64_t(127) << 23), k.f32());
    return k.mul(step, power);
  };
  auto byOptional = [&](Value sum, Value sub) { return k.intToFloat(sub ? k.mul(sum, sub) : sum); };
  return sum(k, k.f32(), k.constI64(cols / runWeights()), [&](Value index) {
    Run r = run(row, index);
    auto value = [&](Value i) {
      Value at = k.add(k.add(r.first, i), fields.codes);
      return k.extendS(k.load(k.i8(), k.at(record, at), 1), k.i32());
    };
    Value count = k.constI64(runWeights());
    Value products = sum(k, k.i32(), count, [&](Value i) { return k.mul(code(r, i), value(i)); });
    Value total = k.mul(r.scale, byOptional(products, r.sub));
    if (r.min) {
      Value values = sum(k, k.i32(), count, value);
      Value minimum = k.mul(r.min, byOptional(values, r.subMin));
      total = format.subtractMin ? k.sub(total, minimum) : k.add(total, minimum);
    }
    return k.mul(total, actScale(r.first));
  });
}

FailureOr<Value> Weights::dot(Operation *op, const Row &row, Value record,
                              pack::ActType act) const {
  if (act.getKind() == pack::ActKind::F32)
    return dotFloats(row, record);
  if (isFloat())
    return op->emitError("multiplies float weights with integer activations; quantize to f32");
  return dotCodes(row, record, act);
}

} // namespace izhc::reference
